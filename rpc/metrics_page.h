// One page of text over HTTP, for Prometheus: GET /metrics and nothing else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rpc/event_loop.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

// "http:127.0.0.1:9464", of this machine only, or "tls:host:port", where readers show a certificate
// of the cluster's authority.
struct MetricsAddress {
  bool tls = false;
  std::string host;
  uint16_t port = 0;  // 0 asks for any free port

  static Result<MetricsAddress> parse(std::string_view text);
  std::string to_string() const;
};

class MetricsPage {
 public:
  using Render = std::function<std::string()>;

  // `render` is called on the loop's thread for each reading. kInvalid: TLS without files, or files
  // that cannot be used. kUnreachable: the address cannot be listened on.
  static Result<std::unique_ptr<MetricsPage>> listen(EventLoop& loop, const MetricsAddress& address,
                                                     const Tls& tls, Render render);
  ~MetricsPage();

  MetricsAddress address() const;  // with the port that was given

 private:
  struct Listener;
  explicit MetricsPage(std::shared_ptr<Listener> listener);
  std::shared_ptr<Listener> listener_;
};

}  // namespace tierpilot
