// Trains the dqn by simulation. First what a placement costs others is searched
// (externality_search.h), from the heuristic delay-finish or given weights on. Then, an episode
// after the other, a cluster and a workload are drawn, the dqn places the tasks and learns from
// each what it took.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "policies/placement/dqn/dqn_learner.h"
#include "policies/sim/evaluation/externality_search.h"

namespace tierpilot::sim {

struct TrainingSettings {
  uint64_t seed = 1;
  SearchSettings search;
  uint32_t episodes = 60;
  uint32_t tasks = 400;  // of each episode
  // After every so many episodes the weights are tried on `trials` runs that stay the same; the
  // best ones are the result, as the last ones need not be.
  uint32_t trial_interval = 10;
  uint32_t trials = 96;
  DqnSettings dqn;
};

// [training], [search], [externality] (the weights that the search starts from, by the names of the
// terms; those of delay-finish where none is given) and [dqn]; kInvalid names every wrong value and
// unknown key with its line.
Result<TrainingSettings> read_training_settings(const std::filesystem::path& path);
// Every setting as text: equal texts, equal trainings.
std::string describe(const TrainingSettings& settings);

class Training {
 public:
  explicit Training(const TrainingSettings& settings);

  struct Episode {
    uint32_t number = 0;  // from 1
    double response = 0;  // while it explores, over the best heuristic's on the same tasks
    double loss = 0;
    double trial = 0;  // geometric mean of response over the best heuristic's; 0: none was due
  };
  // False from either ends it early. Sets torch of this thread to one core: equal settings give
  // equal weights on machines with the same libtorch and processor, whatever `threads` is.
  Status run(uint32_t threads, const std::function<bool(const Generation&)>& each_generation,
             const std::function<bool(const Episode&)>& each_episode);
  // The best ones so far.
  DqnWeights weights() const;
  // Of the searched externality without any network.
  double searched_trial() const { return searched_trial_; }

 private:
  Status draw_trials();
  Result<double> trial(Policy& policy) const;
  Result<Episode> episode(uint32_t number);
  Status try_weights(Episode& episode);

  TrainingSettings settings_;
  SeededRandom random_;
  std::shared_ptr<Mailbox<DqnWeights>> mailbox_ = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner_;
  uint64_t first_task_ = 0;
  std::vector<TrainingRun> trials_;
  DqnWeights best_;
  double best_trial_ = 0;
  double searched_trial_ = 0;
};

}  // namespace tierpilot::sim
