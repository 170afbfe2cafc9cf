// A node daemon that is only its wire: it registers, keeps its lease, takes assignments and reports
// that they were served, started and, after a while, that they exited. Many fit in one process.
// Event loop thread only.
#pragma once

#include <capnp/capability.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rpc/client.h"
#include "rpc/cluster.capnp.h"
#include "rpc/event_loop.h"

namespace tierpilot::bench {

struct NodeHooks {
  std::function<void(uint64_t task)> started;   // an assignment has arrived
  std::function<void(uint64_t task)> recorded;  // the coordinator has its end on disk
};

// Version 1 of a dataset, as a node says that it has it; its digest is made from its name.
struct SimulatedReplica {
  std::string dataset;
  uint64_t bytes = 0;
  std::string home;  // the node that keeps it
};

// The tasks that run on all nodes. All take equally long, so they end in order and share a timer.
class Runs {
 public:
  Runs(EventLoop& loop, int64_t run_ms) : loop_(loop), run_ms_(run_ms) {}

  int64_t run_ms() const { return run_ms_; }
  void add(std::function<void()> end);

 private:
  struct Run {
    int64_t end_ns;  // boot time
    std::function<void()> end;
  };
  void wait_for_first();

  EventLoop& loop_;
  const int64_t run_ms_;
  std::deque<Run> running_;
};

class SimulatedNode {
 public:
  SimulatedNode(EventLoop& loop, Runs& runs, std::string name, uint32_t units, NodeHooks hooks);

  // Resolves when registered; afterwards it reports until the object goes.
  kj::Promise<void> join(const Address& coordinator);
  // Tells that it has these, in its fast tier; they must outlive it.
  void hold(const std::vector<SimulatedReplica>& replicas);
  // Nothing that it told is left to be acknowledged.
  bool all_told() const { return events_.empty(); }

 private:
  class Service;
  struct Event {
    enum class Kind { kServed, kStarted, kExited, kReplica };
    uint64_t sequence = 0;
    Kind kind = Kind::kServed;
    uint64_t task = 0;
    uint32_t attempt = 0;
    const SimulatedReplica* replica = nullptr;
  };

  void assigned(uint64_t task, uint32_t attempt);
  void report(Event::Kind kind, uint64_t task, uint32_t attempt);
  kj::Promise<void> keep_reporting();
  kj::Promise<void> update();
  kj::Promise<void> until_work();
  kj::Promise<void> keep_beating();
  void acknowledged(uint64_t sequence);

  EventLoop& loop_;
  Runs& runs_;
  std::string name_;
  uint32_t units_;
  NodeHooks hooks_;
  uint32_t lease_ms_ = 0;
  uint64_t sequence_ = 0;
  uint64_t sent_ = 0;  // the newest event of the last update
  std::deque<Event> events_;
  kj::Own<kj::PromiseFulfiller<void>> wake_;
  kj::Own<RpcConnection> connection_;
  kj::Maybe<wire::NodeSession::Client> session_;
  kj::Maybe<kj::Promise<void>> reporting_, beating_;
};

// A few at a time; returns when all have joined.
void join_all(EventLoop& loop, const Address& coordinator,
              const std::vector<std::unique_ptr<SimulatedNode>>& nodes);

}  // namespace tierpilot::bench
