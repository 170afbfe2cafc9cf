#include "policies/sim/evaluation/teacher.h"

#include <utility>

namespace tierpilot::sim {
namespace {

class OnlineTeacher final : public Teacher {
 public:
  explicit OnlineTeacher(std::unique_ptr<Learner> learner)
      : Teacher(*learner, 0), owned_(std::move(learner)) {
    owned_->begin();
  }

  void decided(Attempt attempt, const View& view, const Decision& decision) override {
    Teacher::decided(attempt, view, decision);
    train();
  }
  void served(Attempt attempt, const ServiceMeasure& measure, const RewardParts& reward) override {
    Teacher::served(attempt, measure, reward);
    train();
  }
  void finished(Attempt attempt, const TaskTimes& times) override {
    Teacher::finished(attempt, times);
    train();
  }

 private:
  void train() {
    while (learner().ready()) learner().train_batch();
    learner().copy_weights_if_due();
  }

  std::unique_ptr<Learner> owned_;
};

}  // namespace

// Attempts are few; the low bits hold them.
uint64_t Teacher::id_of(Attempt attempt) const {
  return (first_task_ + attempt.task) << 12 | (attempt.attempt & 0xfff);
}

void Teacher::decided(Attempt attempt, const View& view, const Decision& decision) {
  learner_.decided(id_of(attempt), view, decision.node);
}

void Teacher::served(Attempt attempt, const ServiceMeasure&, const RewardParts& reward) {
  learner_.told(id_of(attempt), DataServed{reward});
}

void Teacher::abandoned(Attempt attempt) {
  learner_.told(id_of(attempt), Abandoned{});
}

void Teacher::finished(Attempt attempt, const TaskTimes& times) {
  learner_.told(id_of(attempt), Finished{times.since_decision_s});
}

std::unique_ptr<Listener> learn_during_run(std::unique_ptr<Learner> learner) {
  return std::make_unique<OnlineTeacher>(std::move(learner));
}

}  // namespace tierpilot::sim
