// What a task with a share of a unit will use and how long it will run: by its model card, by tasks
// of its name that have run, or by what its user says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "coordinator/core/sharing/past_runs.h"
#include "coordinator/core/sharing/share_record.h"
#include "model/task_spec.h"
#include "policies/sharing/predict/job_predictor.h"

namespace tierpilot {

class ShareForecasts {
 public:
  static constexpr size_t kMostNames = 10'000;

  // Without a predictor model cards tell nothing; of GPUs they tell nothing yet: none was measured.
  explicit ShareForecasts(std::shared_ptr<const sharing::JobPredictor> predictor)
      : predictor_(std::move(predictor)) {}

  ShareForecast of(const TaskSpec& spec) const;
  // A task has run to its end: for so long, its start included, if nothing had held it back.
  // `start_s`: nothing where it told no iterations.
  // Gives what is known of the name now; null: it has none. For a new one that has ended longest
  // ago goes where there are too many: `forgotten`.
  struct Learned {
    const PastRuns* runs = nullptr;
    std::optional<PastRunsId> forgotten;
  };
  Learned ended(const TaskSpec& spec, uint32_t milli, uint64_t memory_bytes, double run_s,
                std::optional<double> start_s, int64_t now_ms);
  // What an earlier coordinator knew.
  void restore(PastRunsByName past);
  // A training has come to its first iteration: so long it took, if nothing held it back.
  void began(double start_s);

 private:
  // A framework is loaded and a model made, which no card tells of.
  static constexpr double kUsualStart_s = 4;
  // Nothing: the card cannot be read, or it is of a model unlike all that are known.
  std::optional<ShareForecast> by_card(const TaskSpec& spec) const;
  std::optional<ShareForecast> by_past(const TaskSpec& spec) const;

  std::shared_ptr<const sharing::JobPredictor> predictor_;
  PastRunsByName past_;
  double start_s_ = kUsualStart_s;                                           // of trainings here
  mutable std::unordered_map<std::string, sharing::JobPrediction> by_card_;  // of those that wait
};

}  // namespace tierpilot
