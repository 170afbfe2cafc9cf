// Where every task is in its life, and which attempts the coordinator counts at each node.
#pragma once

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>

#include "base/large_pages.h"
#include "policies/sim/data/prefetch.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/events/event.h"
#include "policies/sim/view/gpus.h"

namespace tierpilot::sim {

// arriving -> queued -> assigned (the node's: on its way, data) -> ready -> running -> settling
// -> reported (on its way to the coordinator) -> ended; lost: its node failed, not queued yet.
// A rank of a gang: ready -> gathering (has its units, the gang has not all of its own) -> running;
// reported -> over (the gang is not) -> ended.
enum class TaskPhase : uint8_t {
  kArriving,
  kQueued,
  kAssigned,
  kReady,
  kGathering,
  kRunning,
  kSettling,
  kReported,
  kOver,
  kLost,
  kEnded
};

// What the coordinator hears of an attempt.
enum class Verdict : uint8_t { kSucceeded, kAgain, kTryAgain };

// Of a task and its last attempt.
struct alignas(64) AttemptState {
  int64_t decided_ns = 0;
  int64_t started_ns = 0;
  int64_t ended_ns = 0;  // its run
  Gpus::Mask gpus = 0;
  uint64_t missing_bytes = 0;  // of its data, not in its node's fast tier when it was assigned
  double done_operations = 0;  // kept by checkpoints
  uint32_t node = kNone;
  uint32_t generation = 0;  // of its valid events
  uint32_t arrival = 0;     // at its node: the order in which tasks begin there
  uint16_t attempt = 0;     // how many there have been
  TaskPhase phase : 4 = TaskPhase::kArriving;
  Verdict verdict : 2 = Verdict::kSucceeded;
  bool running : 1 = false;  // the coordinator knows of its start
  bool rewarded : 1 = false;
  uint8_t forgiven = 0;  // attempts that were lost with a node or GPU, and do not count
};

class AttemptTable {
 public:
  using Tasks = boost::container::small_vector<uint32_t, 10>;

  AttemptTable(size_t tasks, size_t nodes) : states_(tasks), at_(nodes) {}

  AttemptState& operator[](uint32_t task) { return states_[task]; }
  const AttemptState& operator[](uint32_t task) const { return states_[task]; }
  // An event whose subject is a task.
  bool is_valid(const Event& event) const {
    return states_[event.subject].generation == event.generation;
  }
  // The task's events are void; the generation of those to come.
  uint32_t renew(uint32_t task) { return ++states_[task].generation; }
  void end(uint32_t task) {
    states_[task].phase = TaskPhase::kEnded;
    renew(task);
  }

  const Tasks& at(uint32_t node) const { return at_[node]; }
  void enter(uint32_t task) { at_[states_[task].node].push_back(task); }
  void leave(uint32_t task) {
    auto& tasks = at_[states_[task].node];
    *std::find(tasks.begin(), tasks.end(), task) = tasks.back();
    tasks.pop_back();
  }

  // Ask for memory that will be touched.
  void expect(uint32_t task) const { prefetch(states_[task]); }
  void expect_at(uint32_t node) const { prefetch(at_[node]); }

 private:
  LargeVector<AttemptState> states_;  // by task
  LargeVector<Tasks> at_;             // by node
};

}  // namespace tierpilot::sim
