// One run: the lives of all tasks, from arrival to end. Internal to the simulator.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/large_pages.h"
#include "policies/scheduling/held_tasks.h"
#include "policies/scheduling/queue_turns.h"
#include "policies/sim/data/data_plane.h"
#include "policies/sim/engines.h"
#include "policies/sim/failures.h"
#include "policies/sim/queue/blocked_head.h"
#include "policies/sim/queue/task_queue.h"
#include "policies/sim/recorder.h"
#include "policies/sim/simulator.h"
#include "policies/sim/view/cluster_view.h"

namespace tierpilot::sim {

class Simulation final : private DataPlane::Client {
 public:
  Simulation(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
             const RunOptions& options);
  Result<RunResult> run();

 private:
  // arriving -> queued -> assigned (the node's: on its way, data) -> ready -> running -> settling
  // -> reported (on its way to the coordinator) -> ended; lost: its node failed, not queued yet
  enum class Phase : uint8_t {
    kArriving,
    kQueued,
    kAssigned,
    kReady,
    kRunning,
    kSettling,
    kReported,
    kLost,
    kEnded
  };
  // What the coordinator hears of an attempt.
  enum class Verdict : uint8_t { kSucceeded, kAgain, kTryAgain };

  struct alignas(64) State {
    int64_t decided_ns = 0;
    int64_t started_ns = 0;
    int64_t ended_ns = 0;  // its run
    Gpus::Mask gpus = 0;
    uint64_t missing_bytes = 0;  // of its data, not in its node's fast tier when it was assigned
    double done_operations = 0;  // kept by checkpoints
    uint32_t node = kNone;
    uint32_t generation = 0;  // of its valid events
    uint32_t arrival = 0;     // at its node: the order in which tasks begin there
    uint16_t attempt = 0;
    Phase phase : 4 = Phase::kArriving;
    Verdict verdict : 2 = Verdict::kSucceeded;
    bool running : 1 = false;  // the coordinator knows of its start
    bool rewarded : 1 = false;
  };

  void arrive(uint32_t task);
  void handle(const Event& event);
  // Ask for memory that coming events will touch (look_ahead.cc).
  void look_ahead(const Event& taken) const;
  void expect(const Event& event, Soon soon) const;
  void expect_received(uint32_t task, Soon soon) const;
  void expect_at_node(uint32_t task, Soon soon) const;
  void expect_report(uint32_t task, Soon soon) const;
  void expect_arrivals(size_t arrived) const;
  void pump();
  void enqueue(uint32_t task);
  class QueueLook;
  uint32_t next_task();
  // See policies/scheduling/service_order.h.
  double far_s(uint32_t task) const;
  // The policy's decision about the queue's `next_`.
  Status ask_policy(uint32_t task);
  void place(uint32_t task, const View& view, size_t node);
  void hold(uint32_t task, const View& view, size_t node);
  void wake_held();
  void wake_those_held_for(uint32_t node);
  void held_longest(uint32_t task);
  void placed_after_hold(uint32_t task);
  void forget_held(uint32_t task);
  int64_t asked_ns(uint32_t task) const;  // first, for its last attempt
  // An event of the task when the coordinator or its node has been told.
  void after_handling(EventQueue::Lane lane, double seconds, EventKind kind, uint32_t task);
  void received(uint32_t task);
  void launch_ready(uint32_t node);
  void launch(uint32_t task);
  void run_ended(uint32_t task);
  void report(uint32_t task, Verdict verdict);
  void reported(uint32_t task);
  void queue_again(uint32_t task, bool counts);
  void succeed(uint32_t task);
  void end(uint32_t task);

  void node_failed(uint32_t node);
  void node_repaired(uint32_t node);
  void gpu_failed(uint32_t node, uint32_t gpu);
  // Takes an attempt from its node, wherever it is.
  void detach(uint32_t task);
  void lose(uint32_t task, double after_s);
  void release(uint32_t task);
  double run_s(uint32_t task) const;
  double alone_s(const Task& task) const;
  // As BlockedHead::Entry.
  uint32_t waits_for(uint32_t task) const;
  // That the task has to wait for; kNone: none.
  uint32_t missing_dataset(uint32_t task) const;
  // A dataset of it is gone for good.
  bool lost(uint32_t task) const;
  void give_up(uint32_t task);
  void set_writer(uint32_t task, uint32_t from, uint32_t to);

  void served(uint32_t task, const Service& service) override;
  void unserved(uint32_t task, bool stale) override;
  double transfer(int64_t now_ns, uint32_t node, bool begins) override;
  void settled(uint32_t task, bool committed) override;
  void room_changed(uint32_t node) override { view_.room_changed(node); }

  const ClusterSpec& cluster_;
  const Workload& workload_;
  Policy& policy_;
  const RunOptions& options_;
  const bool holds_;
  const bool looks_ahead_;

  EventQueue events_;
  ReplicaStore store_;
  DataPlane data_;
  ClusterView view_;
  Engines engines_;
  Failures failures_;
  BlockedHead head_;  // of the queue
  TaskQueue queue_;   // beyond it
  QueueTurns turns_;
  size_t next_ = 0;  // of the head's entries, the task that is to be placed
  HeldTasks held_back_;
  std::unordered_map<uint32_t, int64_t> first_asked_ns_;  // by task; of those that were held
  Recorder recorder_;
  LargeVector<State> states_;
  // By node: attempts that the coordinator counts there.
  LargeVector<boost::container::small_vector<uint32_t, 10>> held_;
  std::vector<uint32_t> writer_;  // by dataset: the task that may write it
  int64_t now_ns_ = 0;
  uint32_t arrivals_ = 0;  // at nodes
  size_t ended_ = 0;
  bool work_available_ = false;
  // Who stands before it was not there when the queue was last looked at.
  QueuePlace looked_until_{HUGE_VAL, UINT64_MAX};
  uint64_t availability_seen_ = 0;  // of the store, then
  double fastest_operations_per_s_ = 0, fastest_read_bytes_per_s_ = 0, least_launch_s_ = 0;
  Status failed_;
};

}  // namespace tierpilot::sim
