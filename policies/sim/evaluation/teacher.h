// Learning from a simulated run: a learner is told what the coordinator would tell it.
#pragma once

#include <memory>

#include "policies/learning/learner.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {

class Teacher : public Listener {
 public:
  // The learner knows this run's tasks as those from `first_task` on.
  Teacher(Learner& learner, uint64_t first_task) : learner_(learner), first_task_(first_task) {}

  void decided(Attempt attempt, const View& view, const Decision& decision) override;
  void served(Attempt attempt, const ServiceMeasure& measure, const RewardParts& reward) override;
  void abandoned(Attempt attempt) override;
  void finished(Attempt attempt, const TaskTimes& times) override;

 protected:
  Learner& learner() { return learner_; }

 private:
  uint64_t id_of(Attempt attempt) const;

  Learner& learner_;
  const uint64_t first_task_;
};

// It trains as soon as there is something to train on, and hands its weights over as often as it
// would in a coordinator; but training takes no virtual time, and no decision is left out. To be
// told by one thread, whose torch is set to one core.
std::unique_ptr<Listener> learn_during_run(std::unique_ptr<Learner> learner);

}  // namespace tierpilot::sim
