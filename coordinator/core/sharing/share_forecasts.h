// What a task with a share of a unit will use and how long it will run: by its model card, by tasks
// of its name that have run, or by what its user says. In memory only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

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
  void ended(const TaskSpec& spec, uint32_t milli, uint64_t memory_bytes, double run_s,
             std::optional<double> start_s);
  // A training has come to its first iteration: so long it took, if nothing held it back.
  void began(double start_s);

 private:
  // A framework is loaded and a model made, which no card tells of.
  static constexpr double kUsualStart_s = 4;
  struct Past {
    double milli = 0;  // the most that was used
    uint64_t memory_bytes = 0;
    double run_s = 0, longest_s = 0;  // if nothing had held it back
    std::optional<double> start_s;    // of them; of the newest training
    uint32_t runs = 0;
  };
  // Of a name on an engine: what it does on the one tells nothing of the other.
  using PastId = std::pair<Engine, std::string>;
  // Nothing: the card cannot be read, or it is of a model unlike all that are known.
  std::optional<ShareForecast> by_card(const TaskSpec& spec) const;
  std::optional<ShareForecast> by_past(const TaskSpec& spec) const;

  std::shared_ptr<const sharing::JobPredictor> predictor_;
  std::map<PastId, Past> past_;
  double start_s_ = kUsualStart_s;                                           // of trainings here
  mutable std::unordered_map<std::string, sharing::JobPrediction> by_card_;  // of those that wait
};

}  // namespace tierpilot
