// Takes tasks from the queue, has the policy decide, writes the decision down and gives the task to
// the node. The policy is advice: past its deadline, or when it errs, a heuristic decides.
// Event loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/credits.h"
#include "coordinator/core/decisions/holding.h"
#include "coordinator/core/decisions/oversight.h"
#include "coordinator/core/dispatch/next_task.h"
#include "coordinator/core/outcomes/lifecycle.h"
#include "coordinator/policy_host/policy_host.h"

namespace tierpilot {

class GangLife;

class Dispatcher {
 public:
  struct Hooks {
    std::function<void(std::function<void()>)> post;               // from any thread to the loop
    std::function<void(int64_t us, std::function<void()>)> after;  // on the loop
  };

  Dispatcher(ClusterState& state, PolicyHost& host, Oversight& oversight, Hooks hooks)
      : state_(state),
        host_(host),
        oversight_(oversight),
        hooks_(std::move(hooks)),
        holding_(state, host, oversight, {hooks_.after, [this] { pump(); }}),
        credits_(state, host, oversight) {}
  void set_lifecycle(Lifecycle& lifecycle) { lifecycle_ = &lifecycle; }
  void set_gangs(GangLife& gangs) { gangs_ = &gangs; }

  // Something has changed: dispatch what can be.
  void pump();
  // What becomes of its decisions.
  Credits& credits() { return credits_; }

 private:
  void go_on_later();
  void look_further(LookFrom from);
  void look_at_all_later();
  // False: the task could not be placed, and would not be if it were tried again now.
  bool dispatch(Task& task, PlacementView placement);
  void answered(const PolicyHost::Decided& decided);
  // One timer at a time, which outlives the decision that it was set for: most are answered long
  // before, and setting one costs a system call.
  void watch_deadline(int64_t in_us);
  void deadline_passed();
  // The heuristic has the last word about what an adviser wants.
  void take_advice(const OpenDecision& open, const PolicyHost::Decided& decided);
  void carry_out(const OpenDecision& open, const PolicyHost::Decided& decided);
  // As fall_back, and counted as one of the policy's faults.
  void count_fall_back(const OpenDecision& open, const std::string& why);
  // Lets the heuristic decide what `why` kept the policy from deciding. `proposed`: the policy's
  // own choice, kNoNode where it is not known.
  bool fall_back(const OpenDecision& open, const std::string& why, size_t proposed = kNoNode);
  bool place(const OpenDecision& open, const Decision& decision, DecisionRecord record);

  ClusterState& state_;
  PolicyHost& host_;
  Oversight& oversight_;
  Hooks hooks_;
  Lifecycle* lifecycle_ = nullptr;
  GangLife* gangs_ = nullptr;
  std::optional<OpenDecision> open_;
  Holding holding_;
  Credits credits_;
  uint64_t requests_ = 0;
  bool pumping_ = false;
  bool goes_on_ = false;  // a pump() that was cut short is posted
  bool watching_deadline_ = false;
  // Many at the head of the queue let others pass: they are not looked at again at once.
  std::optional<LookFrom> look_from_;
  int64_t look_at_all_ns_ = 0;
  std::optional<int64_t> looks_since_ns_;  // one right after the other, from the head on
  bool watching_looks_ = false;
};

}  // namespace tierpilot
