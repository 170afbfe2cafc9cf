// Takes tasks from the queue, has the policy decide, writes the decision down and gives the task to
// the node. The policy is advice: past its deadline, or when it errs, a heuristic decides.
// Event loop thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/oversight.h"
#include "coordinator/core/decisions/view.h"
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
      : state_(state), host_(host), oversight_(oversight), hooks_(std::move(hooks)) {}
  void set_lifecycle(Lifecycle& lifecycle) { lifecycle_ = &lifecycle; }
  void set_gangs(GangLife& gangs) { gangs_ = &gangs; }

  // Something has changed: dispatch what can be.
  void pump();
  // The data of an attempt was served: the reward of its decision is known.
  void served(AttemptId attempt, const ServedData& data);
  // The attempt is over: what it took is known, or never will be.
  void ended(AttemptId attempt, bool succeeded);

 private:
  struct Open {  // a decision asked for and not answered
    // The same attempt may be decided again, when the node of the first decision went before it was
    // written down, and a late answer is not the new one's.
    uint64_t request = 0;
    AttemptId attempt;
    std::shared_ptr<const PlacementView> placement;
    Oversight::Turn turn;
    int64_t asked_ns = 0;
    int64_t first_asked_ns = 0;  // before it was kept back

    const View& view() const { return placement->view; }
    // Shares `placement`.
    std::shared_ptr<const View> shared_view() const { return {placement, &placement->view}; }
  };
  struct InFlight {  // placed, and not at its end
    Oversight::Turn turn;
    int64_t asked_ns = 0;    // boot time; first
    int64_t decided_ns = 0;  // boot time
    bool fell_back = false;
  };

  void go_on_later();
  // False: the task could not be placed, and would not be if it were tried again now.
  bool dispatch(Task& task, PlacementView placement);
  struct Asked {  // who takes a decision, and since when
    Oversight::Turn turn;
    int64_t since_ns = 0;
  };
  // A task that was kept back stays with who did so, or the policy and the heuristic would be
  // judged by unlike tasks; not once the policy's standing has changed.
  Asked asked(uint64_t task, const View& view);
  // The policy keeps tasks back, or the heuristic in its place, and this is allowed.
  bool may_hold(const std::string& policy) const;
  // Neither for too long already, nor beside too many others.
  bool may_be_held(uint64_t task) const;
  // Those whose turn it is; and all, where others than those who kept them back decide now.
  void wake_held();
  void answered(const PolicyHost::Decided& decided);
  // Not once another policy was chosen, or this one's mode or standing changed.
  bool still_decides(const Oversight::Turn& turn) const;
  // Keeps the task back, as was decided, unless the answer is too late for that.
  void hold(const Open& open, const Decision& decision);
  bool can_still_hold(const Open& open, size_t full) const;
  // The task is placed: nobody waits for it any more, and `record` tells that it was kept back.
  void end_hold(const NodeRecord& node, DecisionRecord& record);
  // One timer, for the first that is due.
  void watch_held();
  // One timer at a time, which outlives the decision that it was set for: most are answered long
  // before, and setting one costs a system call.
  void watch_deadline(int64_t in_us);
  void deadline_passed();
  // The heuristic has the last word about what an adviser wants.
  void take_advice(const Open& open, const PolicyHost::Decided& decided);
  void carry_out(const Open& open, const PolicyHost::Decided& decided);
  // As fall_back, and counted as one of the policy's faults.
  void count_fall_back(const Open& open, const std::string& why);
  // Lets the heuristic decide what `why` kept the policy from deciding. `proposed`: the policy's
  // own choice, kNoNode where it is not known.
  bool fall_back(const Open& open, const std::string& why, size_t proposed = kNoNode);
  bool place(const Open& open, const Decision& decision, DecisionRecord record);
  void credit(const InFlight& placed, double reward);
  // By an earlier coordinator's decision; how long ago that was is on disk.
  void ended_from_before(AttemptId attempt);

  ClusterState& state_;
  PolicyHost& host_;
  Oversight& oversight_;
  Hooks hooks_;
  Lifecycle* lifecycle_ = nullptr;
  GangLife* gangs_ = nullptr;
  std::optional<Open> open_;
  std::map<AttemptId, InFlight> in_flight_;
  std::map<uint64_t, Asked> held_;            // of the tasks in state_.held
  std::pair<std::string, uint64_t> held_by_;  // policy and era of its guard, when last looked at
  int64_t held_watched_ns_ = INT64_MAX;       // when the timer goes off
  uint64_t requests_ = 0;
  bool pumping_ = false;
  bool goes_on_ = false;  // a pump() that was cut short is posted
  bool watching_deadline_ = false;
};

}  // namespace tierpilot
