// The dqn's network with what it learns from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "policies/learning/replay.h"
#include "policies/placement/dqn/settings.h"
#include "policies/placement/dqn/token_trainee.h"

namespace tierpilot {

using TokenExperience = Experience<TokenSet>;

class ValueTrainer {
 public:
  // What the network should say of an experience's action.
  using Target = std::function<float(const TokenExperience&)>;

  ValueTrainer(const DqnSettings& settings, uint64_t seed, Target target);

  // False for a duplicate.
  bool add(TokenExperience experience);
  // From before a restart: what was used up stays used up.
  void restore(std::vector<TokenExperience> replay, double credit_batches);
  double credit_batches() const { return credit_batches_; }
  // Enough experiences, and some of them not used up yet.
  bool ready() const;
  void train_batch();
  // The experiences, not the weights.
  void forget();

  const ReplayBuffer<TokenSet>& replay() const { return replay_; }
  TokenTrainee& trainee() { return trainee_; }
  const TokenTrainee& trainee() const { return trainee_; }
  uint64_t batches() const { return batches_; }
  // Exponentially weighted over the last 50 or so batches.
  double loss() const { return loss_; }

 private:
  std::vector<TokenExperience> draw_by_error(std::vector<float>& weights);

  DqnSettings settings_;
  std::mt19937_64 generator_;
  ReplayBuffer<TokenSet> replay_;
  TokenTrainee trainee_;
  TokenNet net_;  // the trainee's weights, where errors are asked for
  TokenNet::Scratch scratch_;
  Target target_;
  double credit_batches_ = 0;
  uint64_t batches_ = 0;
  double loss_ = 0;
};

}  // namespace tierpilot
