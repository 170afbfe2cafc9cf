// Connections to other daemons' data addresses, one for each; made when they are first used, closed
// when they are idle. On the event loop's thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "rpc/client.h"
#include "rpc/node.capnp.h"

namespace tierpilot::agent {

struct DataLink {
  wire::DataSource::Client source = nullptr;
  kj::Own<RpcConnection> connection;
  kj::Promise<void> watch = nullptr;
  bool broken = false;  // the next one who needs it connects anew
  int64_t used_ns = 0;

  // What went wrong with a call.
  Error failed(const kj::Exception& exception);
};

class DataLinks : public std::enable_shared_from_this<DataLinks> {
 public:
  DataLinks(EventLoop& loop, Tls tls) : loop_(loop), tls_(std::move(tls)) {}

  // Not broken, and used now. Calls wait in it until the connection is there.
  std::shared_ptr<DataLink> to(const std::string& address);

 private:
  static constexpr int64_t kSweepMs = 10'000;
  static constexpr int64_t kIdleNs = 60'000'000'000;

  kj::Promise<wire::DataSource::Client> connect(const std::string& address,
                                                std::weak_ptr<DataLink> weak);
  void sweep_later();
  void sweep();

  EventLoop& loop_;
  const Tls tls_;
  std::map<std::string, std::shared_ptr<DataLink>> links_;
  bool sweeping_ = false;
};

}  // namespace tierpilot::agent
