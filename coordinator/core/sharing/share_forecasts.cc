#include "coordinator/core/sharing/share_forecasts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot {
namespace {

constexpr double kUncertain = 1.5;  // of one run, or of what a user says
constexpr double kMargin = 1.1;     // beyond the longest of several

ShareForecast as_the_user_says(const TaskSpec& spec) {
  ShareForecast forecast;
  forecast.by = "its user";
  forecast.predicted.milli = spec.share.milli > 0 ? spec.share.milli : sharing::kWholeUnit;
  forecast.predicted.memory_bytes = spec.memory_bytes;
  forecast.predicted.run_s = static_cast<double>(spec.share.estimate_ms) / 1e3;
  forecast.predicted.run_upper_s = forecast.predicted.run_s * kUncertain;
  if (spec.share.milli == 0 && spec.share.estimate_ms == 0)
    forecast.by = "nothing: there is no model card, no run of its name and no estimate";
  return forecast;
}

}  // namespace

ShareForecast ShareForecasts::of(const TaskSpec& spec) const {
  auto forecast = as_the_user_says(spec);
  const auto past = spec.name.empty() ? past_.end() : past_.find(spec.name);
  if (past == past_.end()) return forecast;
  const auto& seen = past->second;
  auto& predicted = forecast.predicted;
  forecast.by =
      fmt::format("{} of its name", seen.runs == 1 ? "a run" : std::to_string(seen.runs) + " runs");
  if (spec.share.milli == 0)
    predicted.milli =
        static_cast<uint32_t>(std::clamp<double>(seen.milli * kMargin, 1, sharing::kWholeUnit));
  if (spec.memory_bytes == 0) predicted.memory_bytes = seen.memory_bytes;
  predicted.run_s = seen.run_s;
  predicted.run_upper_s = seen.runs == 1 ? seen.run_s * kUncertain : seen.longest_s * kMargin;
  return forecast;
}

void ShareForecasts::ended(const std::string& name, uint32_t milli, uint64_t memory_bytes,
                           double run_s) {
  if (name.empty() || (past_.size() >= kMostNames && !past_.contains(name))) return;
  auto& past = past_[name];
  past.milli = std::max<double>(past.milli * 0.9, milli);
  past.memory_bytes = std::max(past.memory_bytes, memory_bytes);
  past.longest_s = std::max(past.longest_s, run_s);
  past.run_s += (run_s - past.run_s) / (past.runs + 1);
  ++past.runs;
}

}  // namespace tierpilot
