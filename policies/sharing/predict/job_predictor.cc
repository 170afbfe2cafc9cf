#include "policies/sharing/predict/job_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/predict/jobs/job_model.h"

namespace tierpilot::sharing {
namespace {

constexpr double kMib = 1 << 20;
constexpr double kFarther = 4;         // times the least and the most that it was trained on
constexpr double kMostUnknown = 0.05;  // of a card's operators
constexpr double kMostLogMib = 30;     // no machine has more
constexpr double kMostLogMs = 30;
constexpr const char* kTotalNames[]{"FLOPs", "parameters", "bytes of activations", "operators"};

std::string unlike_card(const JobModel& model, const ModelCard& card) {
  uint64_t operators = 0, unknown = 0;
  for (const auto& [kind, use] : card.operators) {
    operators += use.count;
    if (kind == "Unknown") unknown += use.count;
    if (use.count > 0 && kind != "Unknown" && !model.kinds.contains(kind))
      return fmt::format("no operator of kind {} was among what it was trained on", kind);
  }
  if (operators == 0) return "the card has no operators";
  if (static_cast<double>(unknown) > kMostUnknown * static_cast<double>(operators))
    return fmt::format("{} of {} operators are of no known kind", unknown, operators);
  if (card.unknown_shapes > 0)
    return fmt::format("the sizes of {} values are not known", card.unknown_shapes);
  const auto totals = totals_of(card);
  for (size_t i = 0; i < totals.size(); ++i) {
    const auto& range = model.totals[i];
    if (totals[i] < range.least / kFarther || totals[i] > range.most * kFarther)
      return fmt::format("it has {:.3g} {}, and was trained on {:.3g} to {:.3g}", totals[i],
                         kTotalNames[i], range.least, range.most);
  }
  return {};
}

std::string unlike_why(const JobModel& model, const ModelCard& card, const EngineFeatures& engine) {
  if (engine.engine != model.engine)
    return fmt::format("it was trained on engine '{}', not '{}'", model.engine, engine.engine);
  if (card.job && card.job->threads > 1)
    return fmt::format("it was trained on jobs of one thread, not of {}", card.job->threads);
  return unlike_card(model, card);
}

// The most, too, where a broken predictor gives no number.
double at_most(double value, double most) {
  return value < most ? value : most;
}

uint32_t milli_of(double busy_s, double threads, const ModelCard& card) {
  const double share = busy_s / std::max(iteration_s(busy_s, card), 1e-12);
  return static_cast<uint32_t>(
      std::lround(std::clamp(1000 * threads * share, 1.0, 1000 * threads)));
}

}  // namespace

JobPredictor::JobPredictor(std::shared_ptr<const JobModel> model) : model_(std::move(model)) {}

Result<JobPredictor> JobPredictor::read(std::string_view json) {
  auto model = read_job_model(json);
  if (!model) return tl::unexpected(model.error());
  return JobPredictor(std::make_shared<const JobModel>(std::move(*model)));
}

const PairPrior* JobPredictor::pair_prior() const {
  return model_->pairs ? &*model_->pairs : nullptr;
}

double JobPredictor::float32_ops_per_s() const {
  return model_->float32_ops_per_s;
}

JobPrediction JobPredictor::predict(const ModelCard& card, const EngineFeatures& engine) const {
  const double asked = card.job ? std::max<double>(card.job->threads, 1) : 1;
  const double threads = std::clamp(asked, 1.0, std::max(engine.cores_per_unit, 1.0));
  const double speed = engine.relative_speed > 0 ? engine.relative_speed : 1;
  const auto busy_s = [&](double log_ms) {
    return std::exp(at_most(log_ms, kMostLogMs)) / 1e3 / speed / threads;
  };
  const double log_ms = model_->busy->predict(busy_row(card));
  const double log_mib = model_->memory->predict(resident_row(card));
  const auto bytes = [](double log_mib_beyond) {
    return kMib * std::expm1(std::max(at_most(log_mib_beyond, kMostLogMib), 0.0));
  };
  const double middle_s = busy_s(log_ms), upper_s = busy_s(log_ms + model_->busy_margin);
  const auto iterations = static_cast<double>(card.job ? card.job->iterations : 0);
  JobPrediction prediction{
      .milli = milli_of(middle_s, threads, card),
      .milli_upper = milli_of(upper_s, threads, card),
      .memory_bytes = bytes(log_mib),
      .memory_upper_bytes = static_cast<uint64_t>(bytes(log_mib + model_->memory_margin)),
      .run_s = iterations * iteration_s(middle_s, card),
      .run_upper_s = iterations * iteration_s(upper_s, card),
      .traffic_bytes_s = card.traffic_bytes / std::max(middle_s, 1e-9),
      .why = unlike_why(*model_, card, engine)};
  prediction.unlike = !prediction.why.empty();
  return prediction;
}

}  // namespace tierpilot::sharing
