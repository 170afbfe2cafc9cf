// The learner behind `dqn`. What a placement costs has two parts, known in two ways:
//   own     what the task itself takes, from the decision to its end: measured by every finished
//           task, in a cluster as in a simulation, and learned here;
//   others  what it costs the tasks after it: weights that were searched by simulation, and stay.
// Both correct an estimate (policies/scheduling/estimate.h), so that an untrained dqn decides as
// `delay-finish` does (residual policies: Silver et al., arXiv 1812.06298).
#pragma once

#include <cstdint>
#include <memory>

#include "policies/learning/learner.h"
#include "policies/learning/mailbox.h"
#include "policies/learning/pending.h"
#include "policies/learning/progress.h"
#include "policies/placement/dqn/dqn_policy.h"
#include "policies/placement/dqn/returns.h"
#include "policies/placement/dqn/settings.h"
#include "policies/placement/dqn/value_trainer.h"
#include "policies/placement/dqn/weights.h"

namespace tierpilot {

class DqnLearner final : public Learner {
 public:
  // Writes to `mailbox`, from the start.
  DqnLearner(const DqnSettings& settings, uint64_t seed, size_t pending_capacity,
             std::shared_ptr<Mailbox<DqnWeights>> mailbox);

  void decided(uint64_t id, const View& view, size_t node) override;
  void told(uint64_t id, const Outcome& outcome) override;

  bool ready() const override { return own_.ready(); }
  void train_batch() override;
  void copy_weights() override;
  void copy_weights_if_due() override;

  LearnerCounters counters() const override;
  std::string save() const override;
  Status restore(std::string_view saved) override;
  // A weights file.
  std::string save_weights() const override;
  Status restore_weights(std::string_view saved) override;

  // The weights being trained, under the version that was copied last.
  DqnWeights weights() const;
  // Goes on from other weights, which are copied at once.
  Status start_from(const DqnWeights& weights);

 private:
  struct Sight {
    std::shared_ptr<const TokenSet> seen;  // null: there is nothing to learn from
    size_t action = 0;                     // the token
  };

  // Without tokens when the chosen node is no candidate.
  Sight remember(const View& view, size_t node) const;
  void finished(uint64_t id, double response_s);
  float own_target(const TokenExperience& experience);
  float next_value(const TokenSet& next);
  void take_complete();
  void publish(uint64_t version);

  DqnSettings settings_;
  std::shared_ptr<Mailbox<DqnWeights>> mailbox_;
  PendingTable<TokenSet> pending_;
  ValueTrainer own_;
  Returns returns_;
  ExternalityWeights others_ = delay_finish_externality();
  std::shared_ptr<const DqnWeights> published_;
  FeatureRange trained_on_;
  LearnerProgress progress_;
  uint64_t copied_at_decision_ = 0;
  uint64_t copied_at_batch_ = 0;
  bool copy_due_ = false;
  TokenValuer valuer_;
  TokenValuer selector_;
  DqnWeights selecting_;  // what is trained now, refreshed for each batch that bootstraps
};

}  // namespace tierpilot
