// What becomes of tasks and their attempts: counted, rewarded, and told to a listener.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/service.h"
#include "policies/sim/recorder.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {

class Outcomes {
 public:
  Outcomes(const ClusterSpec& cluster, const Workload& workload, const ReplicaStore& store,
           const RunOptions& options);

  // Call before the state changes: it has been like this since the last call.
  void passed(int64_t now_ns, size_t queued, uint64_t busy_units, uint64_t total_units) {
    recorder_.passed(now_ns, queued, busy_units, total_units);
  }
  void asks(Attempt attempt) {
    if (listener_) listener_->asks(attempt);
  }
  void decided(Attempt attempt, const View& view, const Decision& decision) {
    ++recorder_.counts.decisions;
    if (listener_) listener_->decided(attempt, view, decision);
  }
  void kept_back() { ++recorder_.counts.holds; }
  // True: it was rewarded.
  bool served(int64_t now_ns, Attempt attempt, const Service& service, const TierSpeeds& tiers,
              double utilisation);
  // The attempt is over and no reward will come for it.
  void abandoned(Attempt attempt) {
    if (listener_of(attempt)) listener_->abandoned(attempt);
  }
  void restarts() { ++recorder_.counts.restarts; }
  void node_failed() { ++recorder_.counts.node_failures; }
  void gpu_failed() { ++recorder_.counts.gpu_failures; }

  // A task has ended, in one of three ways.
  void rejected() { ++recorder_.counts.rejected, ++ended_; }
  void failed() { ++recorder_.counts.failed, ++ended_; }
  struct Times {
    int64_t asked_ns;    // first, for the decision that it ended with
    int64_t decided_ns;  // that decision
    int64_t started_ns;
  };
  void succeeded(int64_t now_ns, Attempt attempt, const Times& times);

  size_t ended() const { return ended_; }
  // Once.
  RunResult result(uint64_t events);

 private:
  double alone_s(const Task& task) const;
  Listener* listener_of(Attempt attempt) const {
    return listener_ && workload_.tasks[attempt.task].gang == kNoGang ? listener_ : nullptr;
  }

  const Workload& workload_;
  const ReplicaStore& store_;
  const RewardSettings& reward_;
  Listener* const listener_;
  Recorder recorder_;
  size_t ended_ = 0;
  // What a task takes at least, wherever it runs.
  double overhead_s_ = 0, fastest_operations_per_s_ = 0, fastest_read_bytes_per_s_ = 0;
};

}  // namespace tierpilot::sim
