// The node's side of its relation with the coordinator: dial, register, report, keep the lease; and
// again when it breaks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "daemon/agent/job_channel/job_message.h"
#include "daemon/agent/link/backoff.h"
#include "daemon/agent/link/event_stream.h"
#include "daemon/agent/node/lease.h"
#include "daemon/agent/tasks/task_table.h"
#include "rpc/client.h"
#include "rpc/cluster.capnp.h"

namespace tierpilot::agent {

// Owned by the event loop's thread. One update is under way at most: an answer frees the way for
// the next, which leaves at once when events wait and as a heartbeat otherwise.
class CoordinatorLink {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    EventStream& events;
    TaskTable& tasks;
    wire::Node::Client node;  // what the coordinator may call
    std::function<void(wire::NodeInfo::Builder)> write_info;
    std::function<void(wire::NodeStatus::Builder)> write_status;
    std::function<std::vector<JobReport>()> job_reports;  // not told yet
    std::function<std::vector<ReplicaChange>()> replicas;
    // CLOCK_BOOTTIME until which tasks may run, and when that was asked for; comes before any
    // launch under it.
    std::function<void(int64_t deadline_ns, int64_t sent_ns)> extend_lease;
    std::function<void(const std::string& status)> say;  // for operators
    std::function<void()> registered;                    // the coordinator knows this instance
  };
  CoordinatorLink(Parts parts, Address address, Tls tls, uint64_t seed);
  ~CoordinatorLink();

  void start();
  // Events wait to be sent.
  void wake();
  bool registered() const { return registered_; }
  // Tells the coordinator, if it is there, that this daemon ends and no task is left.
  kj::Promise<void> leave();

 private:
  static constexpr int64_t kFirstRetryMs = 100, kLongestRetryMs = 5'000;
  static constexpr int64_t kAnswerTimeoutMs = 10'000;  // before the first lease is known

  kj::Promise<void> run();
  kj::Promise<void> live_once();
  kj::Promise<void> register_node();
  kj::Promise<void> keep_reporting();
  kj::Promise<void> update();
  // Tells what the node is made of when that has changed.
  kj::Promise<void> describe();
  kj::Promise<void> until_work();
  void fill_registration(wire::Cluster::RegisterNodeParams::Builder to);
  void fill_update(wire::NodeSession::UpdateParams::Builder to);
  void acknowledged(uint64_t sequence);
  void lease_granted(int64_t sent_ns, uint32_t lease_ms);
  // Attempts that waited under a lease that is over must not be launched under the next one.
  void end_lapsed_lease();
  kj::Promise<void> until_lease_ends();
  int64_t retry_ms(const Error& error);
  template <class T>
  kj::Promise<T> or_give_up(kj::Promise<T> answer, const char* what);

  Parts parts_;
  const Address address_;
  const Tls tls_;
  Backoff backoff_;
  Lease lease_;
  bool lease_watched_ = false;
  bool registered_ = false;
  size_t events_sent_ = 0;            // with the update under way
  bool stuck_ = false;                // events were sent and none was acknowledged
  kj::Array<capnp::word> described_;  // the node's info as the coordinator knows it
  Error last_error_{ErrorCode::kIo, ""};
  kj::Own<RpcConnection> connection_;
  std::optional<wire::NodeSession::Client> session_;
  kj::Own<kj::PromiseFulfiller<void>> wake_;
  kj::Promise<void> lease_watch_ = nullptr;
  kj::Promise<void> running_ = nullptr;
};

}  // namespace tierpilot::agent
