// What pairs keep beyond half of their speeds, which live jobs on GPUs begin with.
#include <algorithm>
#include <cmath>

#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/pairs/pair_law.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

constexpr double kLeastKept = 0.05;  // less is taken for so much
// Of published pairs, of ln(kept) from the law of a shared host.
constexpr double kOffSharedHost = 0.15;
constexpr double kLeastLn = -3;  // that is said

enum Column : size_t { kLive, kSharedHost };

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

// Logarithms; nothing of them is fitted.
Row said_of(const PairSample& sample, double victim_milli, double neighbour_milli) {
  static const PairPrior kPrior = measured_gpu_prior();
  const double live = kPrior.ln_kept({.on = UnitKind::kGpu, .milli = victim_milli},
                                     {.on = UnitKind::kGpu, .milli = neighbour_milli});
  const double shared_host = ln_kept_on_shared_host(sample, victim_milli, neighbour_milli);
  return {live, std::max(ln_kept_beyond_half(shared_host, kOffSharedHost), kLeastLn)};
}

std::vector<Row> said_of(const PairData& data) {
  const GpuParts parts(data);
  const bool measured = tell_milli(data);
  std::vector<Row> rows;
  for (const auto& sample : data.samples) {
    const auto milli = [&](const PairJob& job) {
      return measured ? job.milli : parts.of(sample.card, job).mean * kWholeUnit;
    };
    rows.push_back(said_of(sample, milli(sample.victim), milli(sample.neighbour)));
  }
  return rows;
}

Study study_of(const PairData& data, bool of_ln) {
  Study study{.target = of_ln ? "ln of kept beyond half" : "kept beyond half",
              .rows = said_of(data)};
  study.measure = of_ln ? Measure::kRootMeanSquareLn : Measure::kMeanAbsolute;
  for (const auto& sample : data.samples) study.targets.push_back(kept_beyond_half(sample));
  if (of_ln)
    for (auto& target : study.targets) target = std::log(target);
  else
    for (auto& row : study.rows)
      for (auto& said : row) said = std::exp(said);
  study.contenders = {{"default", [] { return make_told(kLive); }},
                      {"shared host", [] { return make_told(kSharedHost); }},
                      {"mean", [of_ln] { return std::make_unique<MeanPrior>(of_ln); }},
                      {"median", [] { return make_median(); }}};
  return study;
}

}  // namespace

double kept_beyond_half(const PairSample& sample) {
  return std::clamp(2 * sample.retained, kLeastKept, 1.0);
}

std::vector<Study> beyond_half_studies(const PairData& data, const std::vector<Split>& splits) {
  std::vector<Study> studies;
  for (const bool of_ln : {false, true}) studies.push_back(study_of(data, of_ln));
  for (auto& study : studies) study.splits = splits;
  return studies;
}

}  // namespace tierpilot::sharing
