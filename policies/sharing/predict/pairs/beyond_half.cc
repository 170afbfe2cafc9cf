// What pairs keep beyond half of their speeds, which live jobs on GPUs begin with.
#include <algorithm>
#include <cmath>

#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/pairs/gpu_parts.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

constexpr double kLeastKept = 0.05;  // less is taken for so much

// Nothing is fitted: it is what a coordinator begins with.
class LivePrior final : public Regressor {
 public:
  LivePrior(bool with_steps, bool of_ln) : with_steps_(with_steps), of_ln_(of_ln) {}

  void fit(const std::vector<Row>&, const std::vector<double>&) override {}

  double predict(const Row& row) const override {
    const auto job = [&](size_t at) {
      return Sharer{
          .on = UnitKind::kGpu, .milli = row[at], .iteration_s = with_steps_ ? row[at + 1] : 0};
    };
    const double ln = prior_.ln_kept(job(0), job(2));
    return of_ln_ ? ln : std::exp(ln);
  }

 private:
  const bool with_steps_, of_ln_;
  const PairPrior prior_ = published_pair_prior();
};

// What all pairs keep alike; its logarithm is the mean of logarithms.
class MeanPrior final : public Regressor {
 public:
  explicit MeanPrior(bool of_ln) : of_ln_(of_ln) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    double sum = 0;
    for (const double target : targets) sum += of_ln_ ? target : std::log(target);
    ln_ = sum / static_cast<double>(rows.size());
  }

  double predict(const Row&) const override { return of_ln_ ? ln_ : std::exp(ln_); }

 private:
  const bool of_ln_;
  double ln_ = 0;
};

// Thousandths on the GPU and seconds of a step, of both.
void add_use(Row& row, const PairSample& sample, const auto& milli_of) {
  for (const auto* job : {&sample.victim, &sample.neighbour}) {
    row.push_back(milli_of(*job));
    row.push_back(1 / job->alone);
  }
}

// On columns of add_use(), and behind what is measured of the same as speeds tell it.
Study without_targets(const PairData& data, bool of_ln) {
  Study study{.target = of_ln ? "ln of kept beyond half" : "kept beyond half"};
  study.measure = of_ln ? Measure::kRootMeanSquareLog : Measure::kMeanAbsolute;
  const GpuParts parts(data);
  const bool measured = tell_milli(data);
  for (const auto& sample : data.samples) {
    Row row;
    if (measured) add_use(row, sample, [](const PairJob& job) { return job.milli; });
    add_use(row, sample,
            [&](const PairJob& job) { return parts.of(sample.card, job).mean * kWholeUnit; });
    study.rows.push_back(std::move(row));
  }
  study.contenders = {
      {"default", [of_ln] { return std::make_unique<LivePrior>(true, of_ln); }},
      {"without step times", [of_ln] { return std::make_unique<LivePrior>(false, of_ln); }},
      {"mean", [of_ln] { return std::make_unique<MeanPrior>(of_ln); }},
      {"median", [] { return make_median(); }}};
  if (measured)
    study.contenders.push_back(
        {"use told by speeds", [of_ln] {
           return make_on_columns({4, 5, 6, 7}, std::make_unique<LivePrior>(true, of_ln));
         }});
  return study;
}

}  // namespace

double kept_beyond_half(const PairSample& sample) {
  return std::clamp(2 * sample.retained, kLeastKept, 1.0);
}

std::vector<Study> beyond_half_studies(const PairData& data, const std::vector<Split>& splits) {
  std::vector<Study> studies;
  for (const bool of_ln : {false, true}) {
    auto study = without_targets(data, of_ln);
    for (const auto& sample : data.samples) {
      const double kept = kept_beyond_half(sample);
      study.targets.push_back(of_ln ? std::log(kept) : kept);
    }
    study.splits = splits;
    studies.push_back(std::move(study));
  }
  return studies;
}

}  // namespace tierpilot::sharing
