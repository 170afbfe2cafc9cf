// The laws of pairs held against pairs of which the use of each alone was measured.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/sharing/predict/pairs/pair_data.h"
#include "policies/sharing/predict/pairs/pair_law.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

enum Column : size_t { kOwnHosts, kOwnHostsByKernels, kSharedHost };

Contender told(const char* name, size_t column) {
  return {name, [column] { return make_told(column); }};
}

double on_own_hosts(const PairSample& sample, double PairJob::*milli) {
  return std::exp(ln_kept_on_own_hosts(sample.victim.*milli / kWholeUnit,
                                       sample.neighbour.*milli / kWholeUnit));
}

double on_shared_host(const PairSample& sample) {
  return std::exp(ln_kept_on_shared_host(sample, sample.victim.milli, sample.neighbour.milli));
}

Split all_rows(const PairData& data) {
  std::vector<size_t> all(data.samples.size());
  std::iota(all.begin(), all.end(), 0);
  return {"all rows", {{"all", all, all}}};
}

// Each of the two is a victim once.
bool all_tell(const PairData& data, double PairJob::*milli) {
  return std::all_of(data.samples.begin(), data.samples.end(),
                     [&](const PairSample& sample) { return sample.victim.*milli > 0; });
}

}  // namespace

bool tell_milli(const PairData& data) {
  return all_tell(data, &PairJob::milli);
}

std::vector<Study> measured_use_studies(const PairData& data) {
  Study study{.target = "retained, law of measured use"};
  for (const auto& sample : data.samples) {
    study.rows.push_back({on_own_hosts(sample, &PairJob::milli),
                          on_own_hosts(sample, &PairJob::traced_milli), on_shared_host(sample)});
    study.targets.push_back(sample.retained);
  }
  study.contenders.push_back(told("default", kOwnHosts));
  if (all_tell(data, &PairJob::traced_milli))
    study.contenders.push_back(told("use told by kernels", kOwnHostsByKernels));
  study.contenders.push_back(told("shared host", kSharedHost));
  study.contenders.push_back({"mean", [] { return make_constant(); }});
  study.contenders.push_back({"median", [] { return make_median(); }});
  study.goal = kRetainedGoal;
  study.splits.push_back(all_rows(data));
  if (auto split = split_by_model(data); !split.folds.empty())
    study.splits.push_back(std::move(split));
  auto studies = beyond_half_studies(data, study.splits);
  studies.insert(studies.begin(), std::move(study));
  return studies;
}

}  // namespace tierpilot::sharing
