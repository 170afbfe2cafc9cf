// What a task with a share of a unit will use and how long it will run: by its model card, by tasks
// of its name that have run, or by what its user says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "coordinator/core/sharing/core_speeds.h"
#include "coordinator/core/sharing/share_record.h"
#include "coordinator/records/past_runs.h"
#include "model/task_spec.h"
#include "policies/sharing/card/model_card.h"
#include "policies/sharing/predict/job_predictor.h"

namespace tierpilot {

// Of a unit that a task may have a share of.
struct UnitFeatures {
  double cores = 1;
  CoreSpeed speed;  // of one of them; of a GPU, against what is foretold for its kind
  sharing::GpuFeatures gpu{};
  double host_speed = 1;  // of the cores beside a GPU, against those that were measured with
};

class ShareForecasts {
 public:
  static constexpr size_t kMostNames = 10'000;

  // Without a predictor model cards tell nothing; of GPUs they tell nothing where it was trained on
  // none.
  explicit ShareForecasts(std::shared_ptr<const sharing::JobPredictor> predictor)
      : predictor_(std::move(predictor)) {}

  // `correction`: of what its card foretells.
  ShareForecast of(const TaskSpec& spec, const UnitFeatures& unit = {},
                   const RunCorrection& correction = {}) const;
  // Of runs of its name; cards and users tell what they do whatever it is called.
  bool knows(const TaskSpec& spec) const {
    return !spec.name.empty() && past_.contains(PastRunsId(spec.share.engine, spec.name));
  }
  // What stands for the model of its card, whatever the task is called and for how many iterations
  // it trains; empty: no card, or one that tells nothing.
  std::string model_of(const TaskSpec& spec) const;
  // Of a run without its start, by its card alone; 0: nothing tells it.
  double run_by_card_s(const TaskSpec& spec, const UnitFeatures& unit) const;
  // A task has run to its end: for so long, its start included, if nothing had held it back, with
  // `milli` of such a unit. `start_s`: nothing where it told no iterations.
  // Gives what is known of the name now; null: it has none. For a new one that has ended longest
  // ago goes where there are too many: `forgotten`.
  struct Learned {
    const PastRuns* runs = nullptr;
    std::optional<PastRunsId> forgotten;
  };
  Learned ended(const TaskSpec& spec, const UnitFeatures& unit, uint32_t milli,
                uint64_t memory_bytes, double run_s, std::optional<double> start_s, int64_t now_ms);
  // What an earlier coordinator knew.
  void restore(PastRunsByName past);
  // A training has come to its first iteration: so long it took, if nothing held it back.
  void began(double start_s);

 private:
  // A framework is loaded and a model made, which no card tells of.
  static constexpr double kUsualStart_s = 4;
  // Null: there is no card that can be read.
  const sharing::JobPrediction* said_by_card(const TaskSpec& spec, const UnitFeatures& unit) const;
  ShareForecast by_user(const TaskSpec& spec, const UnitFeatures& unit) const;
  std::optional<ShareForecast> by_card(const TaskSpec& spec, const UnitFeatures& unit,
                                       const RunCorrection& correction) const;
  std::optional<ShareForecast> by_past(const TaskSpec& spec, const UnitFeatures& unit) const;

  std::shared_ptr<const sharing::JobPredictor> predictor_;
  PastRunsByName past_;
  double start_s_ = kUsualStart_s;  // of trainings here
  struct KnownCard {
    std::optional<sharing::ModelCard> card;  // nothing: it cannot be read
    std::string model;
    // The engine, the kind of GPU and the speed: of a GPU that is not known, no core's.
    std::map<std::tuple<Engine, sharing::GpuFeatures, double, double>, sharing::JobPrediction>
        by_unit;
  };
  // Null: there is none, or nothing to predict by.
  KnownCard* known_card(const TaskSpec& spec) const;
  mutable std::unordered_map<std::string, KnownCard> by_card_;  // of those that wait, by its text
};

}  // namespace tierpilot
