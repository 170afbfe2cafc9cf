// Trains the dqn by simulation, an episode after the other: a cluster and a workload are drawn, the
// dqn places the tasks and learns from each what it took; from some of its decisions on, the same
// future is simulated again with the task on other nodes, and it learns what that cost the others.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "policies/dqn/dqn_learner.h"
#include "policies/sim/evaluation/futures.h"
#include "policies/sim/evaluation/suite.h"

namespace tierpilot::sim {

struct TrainingSettings {
  uint64_t seed = 1;
  uint32_t episodes = 400;
  uint32_t tasks = 400;  // of each episode
  // First episodes in which what a placement costs others is taught by the formula of the
  // heuristic least-cost, for every decision, instead of by futures.
  uint32_t imitated_episodes = 100;
  uint32_t futures = 24;         // decisions of an episode whose cost to others is counted
  uint32_t future_per_unit = 8;  // tasks that a future lasts, for each compute unit
  // After every so many episodes the weights are tried on `trials` runs that stay the same; the
  // best ones are the result, as the last ones need not be.
  uint32_t trial_interval = 10;
  uint32_t trials = 24;
  DqnSettings dqn;
};

// [training] and [dqn]; kInvalid names every wrong value and unknown key with its line.
Result<TrainingSettings> read_training_settings(const std::filesystem::path& path);
// Every setting as text: equal texts, equal trainings.
std::string describe(const TrainingSettings& settings);

class Training {
 public:
  explicit Training(const TrainingSettings& settings);

  struct Episode {
    uint32_t number = 0;  // from 1
    double mean_response_s = 0;
    double estimate_response_s = 0;  // of earliest-finish on the same tasks
    double loss = 0;
    double trial = 0;  // geometric mean of response over that of earliest-finish; 0: none was due
  };
  // False from `each` ends it early. Sets torch of this thread to one core: equal settings give
  // equal weights on machines with the same libtorch and processor.
  Status run(const std::function<bool(const Episode&)>& each);
  // The best ones so far.
  const DqnWeights& weights() const { return best_; }

 private:
  struct Trial {
    EvaluationCell cell;
    Workload workload;
    double estimate_response_s = 0;
  };
  Status draw_trials();
  Result<double> run_trials();
  Result<Episode> episode(uint32_t number);
  Status count_futures(const EvaluationCell& cell, const Workload& workload, const Past& past);

  TrainingSettings settings_;
  SeededRandom random_;
  std::shared_ptr<Mailbox<DqnWeights>> mailbox_ = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner_;
  uint64_t first_id_ = 0;
  std::vector<Trial> trials_;
  DqnWeights best_;
  double best_trial_ = 1;  // of untrained weights
};

}  // namespace tierpilot::sim
