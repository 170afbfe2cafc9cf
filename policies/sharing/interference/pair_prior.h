// What jobs keep beside each other before any of them was measured, and how far single jobs and
// pairs are from it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "policies/sharing/interference/sharer.h"

namespace tierpilot::sharing {

// Standard deviations of ln(kept) about what the prior says.
struct EffectSpreads {
  double all = 0;        // of all pairs together: another machine than the one it was taken from
  double victim = 0;     // of a job, whatever is beside it
  double neighbour = 0;  // of a job, whatever it is beside
  double pair = 0;       // of two jobs, beyond both
};

// ln(kept) as a sum over what is known of the two, see pair_features(); where something is not
// known, its mean. Or by the law of jobs that take turns, beyond half of their speeds.
struct PairPrior {
  double ln = 0;
  std::vector<double> weights;  // of the features less their means; empty: these tell nothing
  std::vector<double> means;
  EffectSpreads spreads;
  bool by_law = false;
  // Variance of ln(kept) beyond the spreads, where the law has no step times, and where it has
  // nothing.
  double without_steps = 0, without_law = 0;

  double ln_kept(const Sharer& victim, const Sharer& neighbour) const;
  double ln_kept(const std::vector<double>& features) const;
  // Of that variance, how much there is.
  double less_sure(const Sharer& victim, const Sharer& neighbour) const;
};

// ln of what is kept by the law of jobs that take turns (turns.h), the share and all, of jobs whose
// use is known: its middle, not the mean over what is uncertain of it.
double ln_kept_in_turns(const Sharer& victim, const Sharer& neighbour);

// Logarithms of memory and traffic, and the use, of the victim and of the neighbour; NaN: not
// known.
std::vector<double> pair_features(const Sharer& victim, const Sharer& neighbour);
inline constexpr size_t kPairFeatures = 6;

// Of GPUs, from the published pairs of two trainings on a K80 and a P100 (Narayanan et al.,
// Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI 2020; 780
// directions). No share was enforced there, so a job of which half its speed was left is taken to
// have lost nothing beyond its share. What the law of jobs that take turns says of the two is
// uncertain, and what is lost is so in the mean over that: nothing beyond half for most. Of two
// jobs of which one's use is not known the mean of all pairs.
PairPrior published_pair_prior();
// The mean of all of them, whatever is known of the two.
PairPrior published_pair_mean();
// Of cores, without a table of this kind of machine: nothing is known to be lost.
PairPrior core_pair_prior();

nlohmann::json pair_prior_json(const PairPrior& prior);
// kInvalid: it is nothing of the kind.
Result<PairPrior> read_pair_prior(const nlohmann::json& saved);

}  // namespace tierpilot::sharing
