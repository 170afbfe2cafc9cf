#include "policies/sharing/predict/jobs/upper_figures.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/mebibyte.h"

namespace tierpilot::sharing {
namespace {

constexpr double kUseQuantile = 0.95, kMemoryQuantile = 0.995;
constexpr double kMostLog = 30;  // of logarithms: no machine has more
constexpr double kUntold =
    0.4;  // where little tells how far off predictions are: half as much more
// A little use is off by as much as this is, since drivers tell whole percents.
constexpr double kGrainMilli = 20;
// Of what a job waits for its card tells; that is off by less than what was learned: a part of it.
constexpr double kOfWaiting = 0.1;

// The most, too, of no number.
double at_most(double value) {
  return value < kMostLog ? value : kMostLog;
}

// The least margin that an iteration stays within.
double needed_run(double step_s, const ModelCard& card, double iteration_s) {
  double least = -kMostLog, most = kMostLog;
  for (int halving = 0; halving < 50; ++halving) {
    const double middle = (least + most) / 2;
    (upper_iteration_s(step_s, card, middle) < iteration_s ? least : most) = middle;
  }
  return most;
}

}  // namespace

double upper_milli(double milli, double margin) {
  return (milli + kGrainMilli) * std::exp(at_most(margin)) - kGrainMilli;
}

double upper_iteration_s(double step_s, const ModelCard& card, double margin) {
  const double factor = std::exp(at_most(margin));
  return iteration_s(step_s * factor, card) * std::pow(factor, kOfWaiting);
}

double upper_memory_bytes(double bytes, double margin) {
  return kMib * std::expm1(std::max(at_most(std::log1p(bytes / kMib) + margin), 0.0));
}

void NeededMargins::add(const std::string& group, const SaidUse& said,
                        const MeasuredTraining& measured) {
  milli_[group].push_back(
      std::log((measured.utilisation_milli + kGrainMilli) / (said.milli + kGrainMilli)));
  run_[group].push_back(needed_run(said.step_s, measured.card, measured.iteration_s));
  memory_[group].push_back(std::log1p(measured.memory_bytes / kMib) -
                           std::log1p(said.memory_bytes / kMib));
}

Margins NeededMargins::margins() const {
  return {upper_margin(milli_, kUseQuantile), upper_margin(run_, kUseQuantile),
          upper_margin(memory_, kMemoryQuantile)};
}

Margins least_margins(size_t architectures) {
  constexpr size_t kFew = 5;
  constexpr double kUntold = 0.4;  // half as much more
  return architectures < kFew ? Margins{kUntold, kUntold, kUntold} : Margins{};
}

Margins larger(const Margins& a, const Margins& b) {
  return {std::max(a.milli, b.milli), std::max(a.run, b.run), std::max(a.memory, b.memory)};
}

nlohmann::json margins_json(const Margins& margins) {
  return {{"milli", margins.milli}, {"run", margins.run}, {"memory", margins.memory}};
}

bool is_margin(double value) {
  return value >= 0 && value <= kMostLog;
}

bool are_margins(const Margins& margins) {
  return is_margin(margins.milli) && is_margin(margins.run) && is_margin(margins.memory);
}

Margins read_margins(const nlohmann::json& saved) {
  return {saved.at("milli").get<double>(), saved.at("run").get<double>(),
          saved.at("memory").get<double>()};
}

}  // namespace tierpilot::sharing
