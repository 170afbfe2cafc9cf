// The law of pairs held against pairs of which the use of each alone was measured.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "policies/sharing/predict/pairs/pair_law.h"

namespace tierpilot::sharing {
namespace {

enum Column : size_t { kKept, kKeptWithoutSteps, kKeptBySpeeds, kKeptByKernels };

// Nothing is fitted: a column has what is kept.
class Told final : public Regressor {
 public:
  explicit Told(size_t column) : column_(column) {}
  void fit(const std::vector<Row>&, const std::vector<double>&) override {}
  double predict(const Row& row) const override { return row[column_]; }

 private:
  const size_t column_;
};

Contender told(const char* name, size_t column) {
  return {name, [column] { return std::make_unique<Told>(column); }};
}

// By the law's middle, with that use of both.
double kept(const PairSample& sample, double PairJob::*milli, bool with_steps = true) {
  const auto live = [&](const PairJob& job) {
    return Sharer{
        .on = UnitKind::kGpu, .milli = job.*milli, .iteration_s = with_steps ? 1 / job.alone : 0};
  };
  return std::exp(ln_kept_in_turns(live(sample.victim), live(sample.neighbour)));
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
  const GpuParts parts(data);
  for (const auto& sample : data.samples) {
    const double by_speeds = 1 / (1 + std::exp(ln_longer(sample, parts)));
    study.rows.push_back({kept(sample, &PairJob::milli), kept(sample, &PairJob::milli, false),
                          by_speeds, kept(sample, &PairJob::traced_milli)});
    study.targets.push_back(sample.retained);
  }
  study.contenders = {told("default", kKept),
                      told("without step times", kKeptWithoutSteps),
                      told("use told by speeds", kKeptBySpeeds),
                      {"mean", [] { return make_constant(); }},
                      {"median", [] { return make_median(); }}};
  if (all_tell(data, &PairJob::traced_milli))
    study.contenders.push_back(told("use told by kernels", kKeptByKernels));
  study.goal = kRetainedGoal;
  study.splits.push_back(all_rows(data));
  if (auto split = split_by_model(data); !split.folds.empty())
    study.splits.push_back(std::move(split));
  auto studies = beyond_half_studies(data, study.splits);
  studies.insert(studies.begin(), std::move(study));
  return studies;
}

}  // namespace tierpilot::sharing
