#include "policies/sharing/predict/job_predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/mebibyte.h"

namespace tierpilot::sharing {
namespace {

constexpr double kMostLogMib = 30;  // no machine has more
constexpr double kMostLogMs = 30;

std::string unlike_why(const JobModel& model, const ModelCard& card, const EngineFeatures& engine) {
  if (engine.engine != model.engine)
    return fmt::format("it was trained on engine '{}', not '{}'", model.engine, engine.engine);
  if (card.job && card.job->threads > 1)
    return fmt::format("it was trained on jobs of one thread, not of {}", card.job->threads);
  return model.cards.unlike_why(card);
}

// The most, too, where a broken predictor gives no number.
double at_most(double value, double most) {
  return value < most ? value : most;
}

double speed_of(const EngineFeatures& engine) {
  return engine.relative_speed > 0 ? engine.relative_speed : 1;
}

uint32_t milli_within(double figure, double most) {
  return static_cast<uint32_t>(std::lround(std::clamp(figure, 1.0, most)));
}

JobPrediction on_gpu(const GpuModel& model, const ModelCard& card, const GpuFeatures& gpu,
                     const GpuSpeed& speed) {
  const auto use = gpu_use(model, card, gpu, speed);
  const auto& margins = model.has_seen(gpu) ? model.margins : model.unseen_margins;
  const auto iterations = static_cast<double>(card.job ? card.job->iterations : 0);
  JobPrediction prediction{
      .milli = milli_within(use.milli(), 1000),
      .milli_upper = milli_within(upper_milli(use.milli(), margins.milli), 1000),
      .memory_bytes = use.memory_bytes,
      .memory_upper_bytes =
          static_cast<uint64_t>(upper_memory_bytes(use.memory_bytes, margins.memory)),
      .run_s = iterations * use.iteration_s,
      .run_upper_s = iterations * upper_iteration_s(use.step_s, card, margins.run),
      .traffic_bytes_s = card.traffic_bytes / std::max(use.busy_s, 1e-9),
      .why = model.unlike_why(gpu)};
  if (prediction.why.empty()) prediction.why = model.cards.unlike_why(card);
  prediction.unlike = !prediction.why.empty();
  return prediction;
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

double JobPredictor::gpu_host_ops_per_s() const {
  return model_->gpu ? model_->gpu->host_ops_per_s : 0;
}

const std::vector<GpuFeatures>& JobPredictor::gpus() const {
  static const std::vector<GpuFeatures> kNone;
  return model_->gpu ? model_->gpu->kinds : kNone;
}

JobPrediction JobPredictor::predict(const ModelCard& card, const EngineFeatures& engine) const {
  if (engine.engine == "gpu" && model_->gpu)
    return on_gpu(*model_->gpu, card, engine.gpu, {speed_of(engine), engine.host_speed});
  const double asked = card.job ? std::max<double>(card.job->threads, 1) : 1;
  const double threads = std::clamp(asked, 1.0, std::max(engine.cores_per_unit, 1.0));
  const double speed = speed_of(engine);
  const double log_ms = at_most(model_->busy->predict(busy_row(card)), kMostLogMs);
  const double log_mib = at_most(model_->memory->predict(resident_row(card)), kMostLogMib);
  const double busy_s = std::exp(log_ms) / 1e3 / speed / threads;
  const double bytes = kMib * std::expm1(std::max(log_mib, 0.0));
  const auto iterations = static_cast<double>(card.job ? card.job->iterations : 0);
  const double upper_s =
      std::exp(at_most(log_ms + model_->busy_margin, kMostLogMs)) / 1e3 / speed / threads;
  const auto milli = [&](double step_s) {
    return milli_within(threads * milli_of(step_s, card), 1000 * threads);
  };
  JobPrediction prediction{
      .milli = milli(busy_s),
      .milli_upper = milli(upper_s),
      .memory_bytes = bytes,
      .memory_upper_bytes = static_cast<uint64_t>(upper_memory_bytes(bytes, model_->memory_margin)),
      .run_s = iterations * iteration_s(busy_s, card),
      .run_upper_s = iterations * upper_iteration_s(busy_s, card, model_->busy_margin),
      .traffic_bytes_s = card.traffic_bytes / std::max(busy_s, 1e-9),
      .why = unlike_why(*model_, card, engine)};
  prediction.unlike = !prediction.why.empty();
  return prediction;
}

}  // namespace tierpilot::sharing
