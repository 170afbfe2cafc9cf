#include "coordinator/core/sharing/core_speeds.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

constexpr double kStep = 0.05;               // of ln(speed)
constexpr double kLeast = 0.05, kMost = 20;  // what no two processors of today differ by
constexpr double kRunSd = 0.05;              // of ln of a run, measured once
constexpr double kMostRatio = 5;             // beyond it something else went on

}  // namespace

double CoreSpeeds::probed(const NodeFacts& node) const {
  if (!(reference_ops_per_s_ > 0) || !(node.float32_ops_per_s > 0)) return 1;
  return std::clamp(node.float32_ops_per_s / reference_ops_per_s_, kLeast, kMost);
}

CoreSpeed CoreSpeeds::of(const std::string& where, double probed) {
  const auto effect = effects_.of_victim(where);
  const double ln = std::log(probed) - effect.ln;
  return {std::exp(std::round(std::clamp(ln, std::log(kLeast), std::log(kMost)) / kStep) * kStep),
          std::ceil(std::sqrt(effect.variance) / kStep) * kStep};
}

RunCorrection CoreSpeeds::of_model(const std::string& model) {
  const auto effect = effects_.of_neighbour(model);
  const double around = kSpreads.pair * kSpreads.pair + kRunSd * kRunSd;
  return {effect.ln, std::sqrt(effect.variance + around), effect.of_names};
}

void CoreSpeeds::ran(const std::string& where, const std::string& model, double ratio) {
  if (model.empty() || !(ratio > 1 / kMostRatio && ratio < kMostRatio)) return;
  effects_.measured(where, model, std::log(ratio), kRunSd * kRunSd);
  if (const auto measured = effects_.measured(where, model))
    learned_.push_back({where, model, *measured});
}

void CoreSpeeds::restore(const std::vector<records::MeasuredPair>& pairs) {
  for (const auto& pair : pairs) effects_.restore(pair.first, pair.second, pair.measured);
}

}  // namespace tierpilot
