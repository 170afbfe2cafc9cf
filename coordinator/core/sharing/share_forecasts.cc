#include "coordinator/core/sharing/share_forecasts.h"

#include <fmt/format.h>

#include <algorithm>

#include "policies/sharing/card/card_reader.h"

namespace tierpilot {
namespace {

constexpr double kUncertain = 1.5;  // of one run, or of what a user says
constexpr double kMargin = 1.1;     // beyond the longest of several

ShareForecast by_user(const TaskSpec& spec) {
  ShareForecast forecast;
  forecast.by = "its user";
  auto& predicted = forecast.predicted;
  predicted.run_s = static_cast<double>(spec.share.estimate_ms) / 1e3;
  predicted.run_upper_s = predicted.run_s * kUncertain;
  if (spec.share.milli == 0 && spec.share.estimate_ms == 0)
    forecast.by = "nothing: there is no model card, no run of its name and no estimate";
  return forecast;
}

}  // namespace

ShareForecast ShareForecasts::of(const TaskSpec& spec) const {
  auto forecast = by_card(spec);
  if (!forecast) forecast = by_past(spec);
  if (!forecast) forecast = by_user(spec);
  auto& predicted = forecast->predicted;
  // What its user asks for is what it is to have.
  if (spec.share.milli > 0) predicted.milli = spec.share.milli;
  if (spec.memory_bytes > 0) predicted.memory_bytes = spec.memory_bytes;
  return *forecast;
}

std::optional<ShareForecast> ShareForecasts::by_card(const TaskSpec& spec) const {
  const auto& card = spec.share.model_card;
  if (!predictor_ || card.empty() || spec.has_gpu_share()) return std::nullopt;
  auto known = by_card_.find(card);
  if (known == by_card_.end()) {
    const auto read = sharing::read_card(card);
    if (!read) return std::nullopt;
    constexpr size_t kMostRemembered = 1000;
    if (by_card_.size() >= kMostRemembered) by_card_.clear();
    known = by_card_.emplace(card, predictor_->predict(*read, {.engine = "cpu"})).first;
  }
  const auto& said = known->second;
  if (said.unlike) return std::nullopt;
  ShareForecast forecast{{said.milli_upper, said.memory_upper_bytes, said.run_s, said.run_upper_s},
                         "its model card",
                         true,
                         said.traffic_bytes_s};
  if (said.run_s <= 0) {  // the card has no iterations
    const auto user = by_user(spec);
    forecast.predicted.run_s = user.predicted.run_s;
    forecast.predicted.run_upper_s = user.predicted.run_upper_s;
  }
  constexpr double kStartUpper = 1.5;
  if (forecast.predicted.run_s > 0) {
    forecast.predicted.start_s = start_s_;
    forecast.predicted.run_s += start_s_;
    forecast.predicted.run_upper_s += start_s_ * kStartUpper;
  }
  return forecast;
}

void ShareForecasts::began(double start_s) {
  constexpr double kNewest = 0.2;
  start_s_ += kNewest * (start_s - start_s_);
}

std::optional<ShareForecast> ShareForecasts::by_past(const TaskSpec& spec) const {
  const auto past =
      spec.name.empty() ? past_.end() : past_.find(PastRunsId(spec.share.engine, spec.name));
  if (past == past_.end()) return std::nullopt;
  const auto& seen = past->second;
  ShareForecast forecast;
  forecast.by =
      seen.runs == 1 ? "a run of its name" : fmt::format("{} runs of its name", seen.runs);
  auto& predicted = forecast.predicted;
  predicted.milli =
      static_cast<uint32_t>(std::clamp<double>(seen.milli * kMargin, 1, sharing::kWholeUnit));
  predicted.memory_bytes = seen.memory_bytes;
  predicted.run_s = seen.run_s;
  predicted.run_upper_s = seen.runs == 1 ? seen.run_s * kUncertain : seen.longest_s * kMargin;
  forecast.of_training = seen.start_s.has_value();
  predicted.start_s = std::min(seen.start_s.value_or(0), predicted.run_s);
  return forecast;
}

void ShareForecasts::restore(PastRunsByName past) {
  past_ = std::move(past);
  for (const auto& [id, runs] : past_)
    if (runs.start_s) began(*runs.start_s);
}

ShareForecasts::Learned ShareForecasts::ended(const TaskSpec& spec, uint32_t milli,
                                              uint64_t memory_bytes, double run_s,
                                              std::optional<double> start_s, int64_t now_ms) {
  if (spec.name.empty()) return {};
  const PastRunsId id(spec.share.engine, spec.name);
  Learned learned;
  if (past_.size() >= kMostNames && !past_.contains(id)) {
    const auto oldest =
        std::min_element(past_.begin(), past_.end(), [](const auto& one, const auto& other) {
          return one.second.ended_ms < other.second.ended_ms;
        });
    learned.forgotten = oldest->first;
    past_.erase(oldest);
  }
  auto& past = past_[id];
  past.milli = std::max<double>(past.milli * 0.9, milli);
  past.memory_bytes = std::max(past.memory_bytes, memory_bytes);
  past.longest_s = std::max(past.longest_s, run_s);
  past.start_s = start_s;
  past.run_s += (run_s - past.run_s) / (past.runs + 1);
  ++past.runs;
  past.ended_ms = now_ms;
  learned.runs = &past;
  return learned;
}

}  // namespace tierpilot
