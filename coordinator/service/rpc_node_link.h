// A NodeLink over the capability that a daemon gave when it registered.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/nodes/node_link.h"
#include "rpc/event_loop.h"
#include "rpc/node.capnp.h"

namespace tierpilot {

class RpcNodeLink final : public NodeLink {
 public:
  RpcNodeLink(EventLoop& loop, std::string node, wire::Node::Client client)
      : loop_(loop), node_(std::move(node)), client_(kj::mv(client)) {}

  // A capability may throw when it goes; a NodeLink must not.
  ~RpcNodeLink() noexcept override {}

  void start(const Assignment& assignment, Started done) override;
  void cancel(AttemptId attempt, const std::string& reason) override;
  void create_dataset(const std::string& name, const DatasetSource& source,
                      std::function<void(Result<DatasetVersion>)> done) override;
  void drop_dataset(const std::string& name, uint64_t below_version) override;
  void discard_version(const DatasetVersion& what) override;
  void set_home(const DatasetVersion& what, bool home) override;
  void keep_dataset(const DatasetNeed& need, std::function<void(Status)> done) override;
  void verify_dataset(const DatasetVersion& what,
                      std::function<void(Result<CopyCheck>)> done) override;
  void set_share(AttemptId attempt, uint32_t milli_units, Shared done) override;
  void tell_job(AttemptId attempt, const JobAdvice& advice) override;
  void release(AttemptId attempt) override { released_.push_back(attempt); }
  std::vector<AttemptId> take_released() { return std::exchange(released_, {}); }

  wire::Node::Client& client() { return client_; }

 private:
  void send(kj::Promise<void> sent, const char* what);

  EventLoop& loop_;
  std::string node_;
  wire::Node::Client client_;
  std::vector<AttemptId> released_;  // and not told yet
};

}  // namespace tierpilot
