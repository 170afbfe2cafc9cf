// Tasks that are kept back for a full node (policies/scheduling/held_tasks.h): who may keep them
// back and did so, and when they are looked at again. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/open_decision.h"

namespace tierpilot {

class Holding {
 public:
  struct Hooks {
    std::function<void(int64_t us, std::function<void()>)> after;  // on the loop
    std::function<void()> pump;                                    // some are to be looked at again
  };
  struct Asked {  // who takes a decision, and since when
    Oversight::Turn turn;
    int64_t since_ns = 0;  // boot time
  };

  Holding(ClusterState& state, PolicyHost& host, Oversight& oversight, Hooks hooks)
      : state_(state), host_(host), oversight_(oversight), hooks_(std::move(hooks)) {}

  // The policy keeps tasks back, or the heuristic in its place, and this is allowed.
  bool allowed(const std::string& policy) const;
  // Neither for too long already, nor beside too many others.
  bool may_be_held(uint64_t task) const;
  // Those whose turn it is; and all, where others than those who kept them back decide now.
  void wake();
  // A task that was kept back stays with who did so, or the policy and the heuristic would be
  // judged by unlike tasks; not once the policy's standing has changed.
  Asked asked(uint64_t task, const View& view);
  // Keeps the task back, as was decided, unless the answer is too late for that.
  void hold(const OpenDecision& open, const Decision& decision);
  // The task is placed: nobody waits for it any more, and `record` tells that it was kept back.
  void end(const NodeRecord& node, DecisionRecord& record);

 private:
  // One timer, for the first that is due.
  void watch();

  ClusterState& state_;
  PolicyHost& host_;
  Oversight& oversight_;
  Hooks hooks_;
  std::map<uint64_t, Asked> asked_;           // of the tasks in state_.held
  std::pair<std::string, uint64_t> kept_by_;  // policy and era of its guard, when last looked at
  int64_t watched_ns_ = INT64_MAX;            // when the timer goes off
};

}  // namespace tierpilot
