#include "policies/sharing/interference/pair_prior.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "policies/sharing/interference/turns.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

// As far as single pairs are from each other all of them may be from those that were measured on
// another machine.
constexpr double kOtherMachine = 0.15;
constexpr double kLeastLn = -3;
constexpr double kMostSpread = 2;

double log_or_nan(double value) {
  return value > 0 ? std::log(value) : std::numeric_limits<double>::quiet_NaN();
}

bool tell_use(const Sharer& victim, const Sharer& neighbour) {
  return victim.milli > 0 && neighbour.milli > 0;
}

double ln_kept_by_law(const Sharer& victim, const Sharer& neighbour, const EffectSpreads& spreads) {
  const double middle =
      ln_kept_on_own_hosts(victim.milli / kWholeUnit, neighbour.milli / kWholeUnit);
  const double off = std::hypot(spreads.victim, spreads.neighbour, spreads.pair);
  return std::min(ln_kept_beyond_half(middle, off), 0.0);
}

bool is_spread(double value) {
  return value >= 0 && value <= kMostSpread;
}

}  // namespace

std::vector<double> pair_features(const Sharer& victim, const Sharer& neighbour) {
  std::vector<double> features;
  for (const auto* job : {&victim, &neighbour}) {
    features.push_back(log_or_nan(job->memory_bytes));
    features.push_back(log_or_nan(job->traffic_bytes_s));
    features.push_back(job->milli > 0 ? job->milli / 1000
                                      : std::numeric_limits<double>::quiet_NaN());
  }
  return features;
}

double PairPrior::ln_kept(const Sharer& victim, const Sharer& neighbour) const {
  if (by_law && tell_use(victim, neighbour)) return ln_kept_by_law(victim, neighbour, spreads);
  return weights.empty() ? ln : ln_kept(pair_features(victim, neighbour));
}

double PairPrior::less_sure(const Sharer& victim, const Sharer& neighbour) const {
  return by_law && !tell_use(victim, neighbour) ? without_law : 0;
}

double PairPrior::ln_kept(const std::vector<double>& features) const {
  double sum = ln;
  for (size_t i = 0; i < weights.size(); ++i)
    if (!std::isnan(features[i])) sum += weights[i] * (features[i] - means[i]);
  return std::clamp(sum, kLeastLn, 0.0);
}

PairPrior published_pair_mean() {
  PairPrior prior;
  prior.ln = -0.057;
  prior.spreads = {kOtherMachine, 0.074, 0.050, 0.075};
  return prior;
}

PairPrior measured_gpu_prior() {
  PairPrior prior;
  prior.ln = -0.011;
  prior.spreads = {kOtherMachine, 0.09, 0.03, 0.08};
  prior.by_law = true;
  prior.without_law = 0.005;
  prior.counted_from = published_pair_mean().ln;
  return prior;
}

PairPrior core_pair_prior() {
  PairPrior prior;
  prior.spreads = {kOtherMachine, 0.074, 0.050, 0.075};
  return prior;
}

nlohmann::json pair_prior_json(const PairPrior& prior) {
  const auto& spreads = prior.spreads;
  return {{"ln", prior.ln},
          {"weights", prior.weights},
          {"means", prior.means},
          {"spreads", {spreads.all, spreads.victim, spreads.neighbour, spreads.pair}}};
}

Result<PairPrior> read_pair_prior(const nlohmann::json& saved) {
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::kInvalid, "slow-downs of pairs: " + what);
  };
  try {
    PairPrior prior{.ln = saved.at("ln").get<double>(),
                    .weights = saved.at("weights").get<std::vector<double>>(),
                    .means = saved.at("means").get<std::vector<double>>(),
                    .spreads = {}};
    const auto spreads = saved.at("spreads").get<std::vector<double>>();
    if (spreads.size() != 4 || !std::all_of(spreads.begin(), spreads.end(), is_spread))
      return wrong("four spreads of at most 2 are wanted");
    prior.spreads = {spreads[0], spreads[1], spreads[2], spreads[3]};
    if (!(prior.ln <= 0 && prior.ln >= kLeastLn)) return wrong("ln is to be between -3 and 0");
    if (prior.weights.size() != prior.means.size() ||
        (!prior.weights.empty() && prior.weights.size() != kPairFeatures))
      return wrong("it has other weights than features");
    return prior;
  } catch (const nlohmann::json::exception& error) {
    return wrong(error.what());
  }
}

}  // namespace tierpilot::sharing
