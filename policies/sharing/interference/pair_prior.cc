#include "policies/sharing/interference/pair_prior.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "policies/sharing/interference/turns.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

// As far as single pairs are from each other all of them may be from those that were measured on
// another machine.
constexpr double kOtherMachine = 0.15;
constexpr double kLeastLn = -3;
constexpr double kMostSpread = 2;
// By how much ln(kept) of published pairs is off from the law, with step times and without.
constexpr double kOffLaw = 0.15, kOffWithoutSteps = 0.225;
// Nobody is all the time on the GPU or never: use is measured in samples.
constexpr double kLeastPart = 0.02;
constexpr double kLeastStep_s = 1e-6, kMostStep_s = 1e5;

double log_or_nan(double value) {
  return value > 0 ? std::log(value) : std::numeric_limits<double>::quiet_NaN();
}

// The mean of what is below zero of a normal, of what is above zero nothing.
double mean_below_zero(double mean, double deviation) {
  const double at = mean / deviation;
  const double below = std::erfc(at / std::numbers::sqrt2) / 2;
  const double density = std::exp(-at * at / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return mean * below - deviation * density;
}

bool tells_use(const Sharer& job) {
  return job.milli > 0;
}

bool tells_steps(const Sharer& job) {
  return job.iteration_s > 0 && std::isfinite(job.iteration_s);
}

bool tell_steps(const Sharer& victim, const Sharer& neighbour) {
  return tells_steps(victim) && tells_steps(neighbour);
}

TakesTurns as_turns(const Sharer& job, bool with_steps) {
  return {std::clamp(job.milli / kWholeUnit, kLeastPart, 1 - kLeastPart),
          with_steps ? std::clamp(job.iteration_s, kLeastStep_s, kMostStep_s) : 0};
}

double ln_kept_by_law(const Sharer& victim, const Sharer& neighbour) {
  const double beyond_half = ln_kept_in_turns(victim, neighbour) + std::numbers::ln2;
  const double off = tell_steps(victim, neighbour) ? kOffLaw : kOffWithoutSteps;
  return std::clamp(mean_below_zero(beyond_half, off), kLeastLn, 0.0);
}

bool is_spread(double value) {
  return value >= 0 && value <= kMostSpread;
}

}  // namespace

double ln_kept_in_turns(const Sharer& victim, const Sharer& neighbour) {
  const bool with_steps = tell_steps(victim, neighbour);
  return ln_kept_in_turns(as_turns(victim, with_steps), as_turns(neighbour, with_steps));
}

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
  if (by_law && tells_use(victim) && tells_use(neighbour)) return ln_kept_by_law(victim, neighbour);
  return weights.empty() ? ln : ln_kept(pair_features(victim, neighbour));
}

double PairPrior::less_sure(const Sharer& victim, const Sharer& neighbour) const {
  if (!by_law) return 0;
  if (!tells_use(victim) || !tells_use(neighbour)) return without_law;
  return tell_steps(victim, neighbour) ? 0 : without_steps;
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

PairPrior published_pair_prior() {
  PairPrior prior = published_pair_mean();
  prior.by_law = true;
  prior.spreads = {kOtherMachine, 0.045, 0.048, 0.060};
  prior.without_steps = 0.0053;
  prior.without_law = 0.0057;
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
