#include "coordinator/core/sharing/share_forecasts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/content_digest.h"
#include "policies/sharing/card/card_reader.h"

namespace tierpilot {
namespace {

constexpr double kUncertain = 1.5;  // of one run, or of what a user says
constexpr double kMargin = 1.1;     // beyond the longest of several
constexpr uint32_t kRunsOfMost = 20;

ShareForecast said_by_user(const TaskSpec& spec) {
  ShareForecast forecast;
  forecast.by = "its user";
  auto& predicted = forecast.predicted;
  predicted.run_s = static_cast<double>(spec.share.estimate_ms) / 1e3;
  predicted.run_upper_s = predicted.run_s * kUncertain;
  if (spec.share.milli == 0 && spec.share.estimate_ms == 0)
    forecast.by = "nothing: there is no model card, no run of its name and no estimate";
  return forecast;
}

// What a run does on one core.
struct CoreUse {
  double milli = 0;  // of the core; of several threads more than a thousand
  double run_s = 0;
};

// On cores so many times as fast: what it waits for besides takes as long.
CoreUse at_speed(const CoreUse& use, double factor) {
  const double busy = std::min(1.0, use.milli / sharing::kWholeUnit);
  const double longer = busy / factor + 1 - busy;
  return {use.milli / factor / longer, use.run_s * longer};
}

// Of GPUs the runs that a name did are known as they were: kinds are told apart by cards only.
double core_speed(const UnitFeatures& unit) {
  return unit.gpu.name.empty() ? unit.speed.times : 1;
}

sharing::EngineFeatures engine_of(const TaskSpec& spec, const UnitFeatures& unit) {
  return {.engine = spec.has_gpu_share() ? "gpu" : "cpu",
          .relative_speed = unit.speed.times,
          .gpu = unit.gpu,
          .host_speed = unit.host_speed};
}

// Of all that its card says of the model, and nothing of the training.
std::string model_id(sharing::ModelCard card) {
  card.job.reset();
  card.producer.clear();
  return to_string(digest_of(sharing::card_json(card).dump()));
}

uint32_t milli_of_unit(double milli_of_core, const UnitFeatures& unit) {
  return static_cast<uint32_t>(
      std::clamp<double>(std::ceil(milli_of_core / unit.cores), 1, sharing::kWholeUnit));
}

}  // namespace

ShareForecast ShareForecasts::of(const TaskSpec& spec, const UnitFeatures& unit,
                                 const RunCorrection& correction) const {
  auto forecast = by_card(spec, unit, correction);
  if (!forecast) forecast = by_past(spec, unit);
  if (!forecast) forecast = by_user(spec, unit);
  auto& predicted = forecast->predicted;
  // What its user asks for is what it is to have.
  if (spec.share.milli > 0) predicted.milli = spec.share.milli;
  if (spec.memory_bytes > 0) predicted.memory_bytes = spec.memory_bytes;
  return *forecast;
}

ShareForecast ShareForecasts::by_user(const TaskSpec& spec, const UnitFeatures& unit) const {
  auto forecast = said_by_user(spec);
  if (spec.share.model_card.empty()) return forecast;
  const auto* said = said_by_card(spec, unit);
  const bool no_gpu = spec.has_gpu_share() && unit.gpu == sharing::GpuFeatures{};
  const auto why = !predictor_ ? std::string("no predictor is installed")
                   : !said     ? std::string("it cannot be read")
                   : no_gpu    ? std::string("no GPU that is shared is up, whose kind it takes")
                               : said->why;
  const bool user_tells = spec.share.milli > 0 || spec.share.estimate_ms > 0;
  forecast.by = fmt::format(
      "{}; its model card tells nothing: {}",
      user_tells ? "its user" : "nothing: there is no run of its name and no estimate", why);
  return forecast;
}

ShareForecasts::KnownCard* ShareForecasts::known_card(const TaskSpec& spec) const {
  const auto& text = spec.share.model_card;
  if (!predictor_ || text.empty()) return nullptr;
  constexpr size_t kMostRemembered = 1000;
  if (by_card_.size() >= kMostRemembered && !by_card_.contains(text)) by_card_.clear();
  const auto [known, is_new] = by_card_.try_emplace(text);
  auto& card = known->second;
  if (is_new) {
    if (auto read = sharing::read_card(text)) card.card = std::move(*read);
    if (card.card) card.model = model_id(*card.card);
  }
  return card.card ? &card : nullptr;
}

const sharing::JobPrediction* ShareForecasts::said_by_card(const TaskSpec& spec,
                                                           const UnitFeatures& unit) const {
  auto* const known = known_card(spec);
  if (!known) return nullptr;
  const std::tuple key(spec.share.engine, unit.gpu, unit.speed.times, unit.host_speed);
  auto said = known->by_unit.find(key);
  if (said == known->by_unit.end())
    said =
        known->by_unit.emplace(key, predictor_->predict(*known->card, engine_of(spec, unit))).first;
  return &said->second;
}

std::string ShareForecasts::model_of(const TaskSpec& spec) const {
  const auto* const known = known_card(spec);
  return known ? known->model : std::string();
}

double ShareForecasts::run_by_card_s(const TaskSpec& spec, const UnitFeatures& unit) const {
  const auto* const known = known_card(spec);
  if (!known) return 0;
  const auto said = predictor_->predict(*known->card, engine_of(spec, unit));
  return said.unlike ? 0 : said.run_s;
}

std::optional<ShareForecast> ShareForecasts::by_card(const TaskSpec& spec, const UnitFeatures& unit,
                                                     const RunCorrection& correction) const {
  const auto* found = said_by_card(spec, unit);
  if (!found || found->unlike) return std::nullopt;
  const auto& said = *found;
  ShareForecast forecast{{milli_of_unit(said.milli_upper, unit), said.memory_upper_bytes},
                         "its model card",
                         true,
                         said.traffic_bytes_s,
                         static_cast<double>(milli_of_unit(said.milli, unit))};
  auto& predicted = forecast.predicted;
  // What it hardly ever takes is no reason to leave it out where it fits as it usually does.
  const auto whole = unit.gpu.memory_bytes;
  if (static_cast<double>(whole) >= said.memory_bytes && whole > 0)
    predicted.memory_bytes = std::min(predicted.memory_bytes, whole);
  if (said.run_s <= 0) {  // the card has no iterations
    const auto user = said_by_user(spec);
    predicted.run_s = user.predicted.run_s;
    predicted.run_upper_s = user.predicted.run_upper_s;
  } else {
    predicted.run_s = said.run_s * std::exp(correction.ln);
    double upper = said.run_upper_s / said.run_s;
    if (correction.runs > 0) {
      constexpr double kOneSided95 = 1.645;
      upper = std::min(upper, std::exp(kOneSided95 * std::hypot(correction.sd, unit.speed.sd)));
      forecast.by += correction.runs == 1
                         ? ", corrected by a run of its model"
                         : fmt::format(", corrected by {} runs of its model", correction.runs);
    }
    predicted.run_upper_s = predicted.run_s * upper;
  }
  constexpr double kStartUpper = 1.5;
  if (predicted.run_s > 0) {
    predicted.start_s = start_s_;
    predicted.run_s += start_s_;
    predicted.run_upper_s += start_s_ * kStartUpper;
  }
  return forecast;
}

// Who tells of the first iteration later was not loading all the while.
void ShareForecasts::began(double start_s) {
  if (start_s > kLongestStart_s) return;
  constexpr double kNewest = 0.2;
  start_s_ += kNewest * (start_s - start_s_);
}

std::optional<ShareForecast> ShareForecasts::by_past(const TaskSpec& spec,
                                                     const UnitFeatures& unit) const {
  const auto past =
      spec.name.empty() ? past_.end() : past_.find(PastRunsId(spec.share.engine, spec.name));
  if (past == past_.end()) return std::nullopt;
  const auto& seen = past->second;
  ShareForecast forecast;
  forecast.by =
      seen.runs == 1 ? "a run of its name" : fmt::format("{} runs of its name", seen.runs);
  auto& predicted = forecast.predicted;
  const auto use = at_speed({seen.milli, seen.run_s}, core_speed(unit));
  predicted.milli = milli_of_unit(use.milli * kMargin, unit);
  forecast.use_milli = milli_of_unit(use.milli, unit);
  predicted.memory_bytes = std::max(seen.memory_bytes, seen.memory_before_bytes);
  predicted.run_s = use.run_s;
  const double longest_s =
      at_speed({seen.milli, std::max(seen.longest_s, seen.longest_before_s)}, core_speed(unit))
          .run_s;
  predicted.run_upper_s = seen.runs == 1 ? use.run_s * kUncertain : longest_s * kMargin;
  forecast.of_training = seen.start_s.has_value();
  predicted.start_s = std::min(seen.start_s.value_or(0), predicted.run_s);
  return forecast;
}

void ShareForecasts::restore(PastRunsByName past) {
  past_ = std::move(past);
  for (const auto& [id, runs] : past_)
    if (runs.start_s) began(*runs.start_s);
}

ShareForecasts::Learned ShareForecasts::ended(const TaskSpec& spec, const UnitFeatures& unit,
                                              uint32_t milli, uint64_t memory_bytes, double run_s,
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
  const auto use = at_speed({milli * unit.cores, run_s}, 1 / core_speed(unit));
  auto& past = past_[id];
  past.milli = std::max<double>(past.milli * 0.9, use.milli);
  // 95 of 100 take no more than the most of twenty, about; what was once is forgotten.
  if (past.runs > 0 && past.runs % kRunsOfMost == 0) {
    past.longest_before_s = std::exchange(past.longest_s, 0);
    past.memory_before_bytes = std::exchange(past.memory_bytes, 0);
  }
  past.longest_s = std::max(past.longest_s, use.run_s);
  past.memory_bytes = std::max(past.memory_bytes, memory_bytes);
  past.start_s = start_s;
  past.run_s += (use.run_s - past.run_s) / std::min(past.runs + 1, kRunsOfMost);
  ++past.runs;
  past.ended_ms = now_ms;
  learned.runs = &past;
  return learned;
}

}  // namespace tierpilot
