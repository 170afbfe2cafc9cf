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
// known, its mean. Or by the law of jobs on hosts of their own (turns.h), beyond half of their
// speeds.
struct PairPrior {
  double ln = 0;
  std::vector<double> weights;  // of the features less their means; empty: these tell nothing
  std::vector<double> means;
  EffectSpreads spreads;
  bool by_law = false;
  double without_law = 0;  // variance of ln(kept) beyond the spreads, where one's use is not known
  // By law: ln(kept) that measured pairs are counted from. It is in what is stored of them.
  double counted_from = 0;

  double ln_kept(const Sharer& victim, const Sharer& neighbour) const;
  double ln_kept(const std::vector<double>& features) const;
  // Of that variance, how much there is.
  double less_sure(const Sharer& victim, const Sharer& neighbour) const;
};

// Logarithms of memory and traffic, and the use, of the victim and of the neighbour; NaN: not
// known.
std::vector<double> pair_features(const Sharer& victim, const Sharer& neighbour);
inline constexpr size_t kPairFeatures = 6;

// Of GPUs: what live jobs begin with, by the law. Its figures are of the 74 directions of
// data/pairs-h100.csv, of which one keeps less than half. Their mean beyond half is for where the
// use of one is not known. But for that one ln(kept) is 0.125 off the law: 0.093 by the victim's
// architecture, 0.084 by the pair (maximum likelihood); its variance about the mean is 0.005 more.
// Of neighbours these tell nothing (0, with that one 0.19). Of data/pairs-h200.csv the same are
// 0.113, 0.088, 0.067, 0.014 and 0.025, and all keep half or more.
// What is lost is the mean over what is uncertain: nothing beyond half for nearly all.
PairPrior measured_gpu_prior();
// Of the published pairs of two trainings on a K80 and a P100 (Narayanan et al.,
// Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads, OSDI 2020; 780
// directions) the mean, whatever is known of the two: where jobs are drawn that lose as these. No
// share was enforced there, so a job of which half its speed was left is taken to have lost nothing
// beyond its share.
PairPrior published_pair_mean();
// Of cores, without a table of this kind of machine: nothing is known to be lost.
PairPrior core_pair_prior();

nlohmann::json pair_prior_json(const PairPrior& prior);
// kInvalid: it is nothing of the kind.
Result<PairPrior> read_pair_prior(const nlohmann::json& saved);

}  // namespace tierpilot::sharing
