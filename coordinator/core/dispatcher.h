// Takes tasks from the queue, has the policy decide, writes the decision down and gives the task to
// the node. The policy is advice: past its deadline, or when it errs, a heuristic decides.
// Event loop thread only.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "coordinator/core/cluster_state.h"
#include "coordinator/core/lifecycle.h"
#include "coordinator/core/view.h"
#include "coordinator/policy_host/policy_host.h"

namespace tierpilot {

class Dispatcher {
 public:
  struct Hooks {
    std::function<void(std::function<void()>)> post;               // from any thread to the loop
    std::function<void(int64_t us, std::function<void()>)> after;  // on the loop
  };

  Dispatcher(ClusterState& state, PolicyHost& host, Hooks hooks)
      : state_(state), host_(host), hooks_(std::move(hooks)) {}
  void set_lifecycle(Lifecycle& lifecycle) { lifecycle_ = &lifecycle; }

  // Something has changed: dispatch what can be.
  void pump();
  // The data of an attempt was served: the reward of its decision is known.
  void served(AttemptId attempt, const ServedData& data);
  // The attempt is over: what it took is known, or never will be.
  void ended(AttemptId attempt, bool succeeded);

 private:
  struct Open {  // a decision asked for and not answered
    uint64_t id = 0;
    AttemptId attempt;
    PlacementView placement;
    int64_t asked_ns = 0;
  };

  void ask(Task& task, PlacementView placement);
  void answered(const PolicyHost::Decided& decided);
  void deadline_passed(uint64_t id);
  // Lets the heuristic decide what `why` kept the policy from deciding.
  void fall_back(Open open, const std::string& why);
  void place(const Open& open, const Decision& decision, DecisionRecord record);
  void send(const Assignment& assignment, const std::string& node);
  Assignment make_assignment(Task& task, const std::string& node) const;

  ClusterState& state_;
  PolicyHost& host_;
  Hooks hooks_;
  Lifecycle* lifecycle_ = nullptr;
  std::optional<Open> open_;
  // Decisions whose reward is still to come.
  std::map<AttemptId, DecisionRecord> unrewarded_;
  std::map<AttemptId, int64_t> decided_ns_;  // boot time, of attempts that have not ended
};

}  // namespace tierpilot
