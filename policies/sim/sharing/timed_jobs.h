// Jobs that arrive over time, as they are and as they are predicted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/sharing/live/live_unit.h"

namespace tierpilot::sharing {

struct TimedJob {
  uint64_t id = 0;
  // A job of several units is as many of one that stand side by side, with one promise: the id of
  // the first of them. 0: it is of one unit.
  uint64_t first_part = 0;
  double arrival_s = 0;
  JobClass job_class = JobClass::kBestEffort;
  uint32_t model = 0;             // of kModels; who slows whom
  uint32_t need_milli = 0;        // of a unit, while nothing holds it back
  double run_s = 0;               // likewise
  uint32_t asked_milli = 0;       // by its user, who asks for too much
  uint64_t types = kAnyModel;     // bit per type of unit that will do
  Predicted predicted;            // places by an upper quantile
  double promise_s = kNoPromise;  // since its arrival

  uint64_t whole_id() const { return first_part > 0 ? first_part : id; }
};

inline constexpr uint32_t kModels = 24;

// What policies know a model by; a letter, as it is looked up millions of times.
inline std::string model_name(uint32_t model) {
  return {static_cast<char>('a' + model)};
}
inline size_t model_number(const std::string& name) {
  return static_cast<size_t>(name.front() - 'a');
}

struct TimedWorkload {
  uint32_t units = 32;
  std::vector<std::string> types{"unit"};
  std::vector<uint8_t> type_of{};  // each unit, by number; empty: all are of the first
  std::vector<TimedJob> jobs{};    // by arrival
  // What a model keeps of its speed beside another one, as it is and as it is predicted.
  std::vector<double> retained{}, retained_predicted{};  // kModels x kModels
  uint64_t seed = 0;                                     // of what is measured wrongly in a run
};

struct TimedSettings {
  uint32_t units = 32;
  uint32_t jobs = 600;
  double load = 0.9;            // of the units, by what jobs need
  double sensitive_part = 0.4;  // of the jobs
  // Spreads of the logarithm of measured by predicted: docs/results/sharing.md, trainings on a
  // core.
  double need_error = 0.124, run_error = 0.209;
  double retained_error = 0.085;  // mean absolute, of published pairs before their law was known
  bool knows_all = false;         // predictions are exact
  bool asked_alike = false;       // and promises are of what would be predicted without
};

// One seed gives the same jobs whatever is known of them.
TimedWorkload generate_timed(uint64_t seed, const TimedSettings& settings);

}  // namespace tierpilot::sharing
