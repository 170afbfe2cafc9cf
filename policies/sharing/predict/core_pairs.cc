#include "policies/sharing/predict/core_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tierpilot::sharing {
namespace {

constexpr const char* kTwoCores = "two cores";  // that share a cache
constexpr size_t kFewestPairs = 10;
constexpr double kPenalty = 0.1;
constexpr double kLeastKeptPart = 0.05;  // less is taken for so much
constexpr double kOtherMachine = 0.15;   // as of published pairs
constexpr double kLeastSpread = 0.02;

Sharer as_sharer(const PairJob& job) {
  return {.name = job.model,
          .milli = job.milli,
          .memory_bytes = job.memory_bytes,
          .traffic_bytes_s = job.traffic_bytes_s};
}

Row row_of(const PairSample& sample) {
  return pair_features(as_sharer(sample.victim), as_sharer(sample.neighbour));
}

double ln_of(double kept) {
  return std::log(std::max(kept, kLeastKeptPart));
}

// Without spreads.
PairPrior fit_mean(const std::vector<Row>& rows, const std::vector<double>& ln_kept) {
  PairPrior prior;
  prior.means.assign(kPairFeatures, 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      prior.means[i] += row[i] / static_cast<double>(rows.size());
  const auto ridge = make_ridge(kPenalty);
  ridge->fit(rows, ln_kept);
  const double middle = ridge->predict(prior.means);
  prior.ln = std::min(0.0, middle);
  // It is linear: a step along a column tells the column's weight.
  for (size_t i = 0; i < kPairFeatures; ++i) {
    Row step = prior.means;
    step[i] += 1;
    prior.weights.push_back(ridge->predict(step) - middle);
  }
  return prior;
}

class PriorRegressor final : public Regressor {
 public:
  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    std::vector<double> ln_kept;
    for (const double target : targets) ln_kept.push_back(ln_of(target));
    prior_ = fit_mean(rows, ln_kept);
  }
  double predict(const Row& row) const override { return std::exp(prior_.ln_kept(row)); }

 private:
  PairPrior prior_;
};

Study study_of(const std::string& card, const PairData& data) {
  Study study{.target = "kept on " + card};
  for (const auto& sample : data.samples) {
    study.rows.push_back(row_of(sample));
    study.targets.push_back(sample.retained);
  }
  if (auto split = split_by_model(data); !split.folds.empty())
    study.splits.push_back(std::move(split));
  study.contenders = {{"default", [] { return std::make_unique<PriorRegressor>(); }},
                      {"median", [] { return make_median(); }},
                      {"mean", [] { return make_constant(); }},
                      {"nearest-neighbour", [] { return make_nearest(15); }},
                      {"boosted-trees", [] {
                         return make_boosted_trees({.trees = 100, .depth = 2, .least_rows = 20});
                       }}};
  return study;
}

}  // namespace

bool is_of_cores(const std::string& card) {
  return card == kOneCore || card == kTwoCores;
}

bool tell_use(const PairData& data) {
  return std::all_of(data.samples.begin(), data.samples.end(), [](const PairSample& sample) {
    const auto& job = sample.victim;  // each of the two is one once
    return job.milli > 0 && job.memory_bytes > 0 && job.traffic_bytes_s > 0;
  });
}

Result<PairPrior> fit_pair_prior(const PairData& data) {
  std::vector<Row> rows;
  std::vector<double> ln_kept;
  double noise = 0;
  if (!tell_use(data))
    return fail(ErrorCode::kInvalid,
                "a pair does not tell milli, memory_bytes and traffic_bytes_s of both");
  for (const auto& sample : data.samples) {
    if (sample.card != kOneCore) continue;
    rows.push_back(row_of(sample));
    ln_kept.push_back(ln_of(sample.retained));
    noise += sample.noise * sample.noise;
  }
  if (rows.size() < 2 * kFewestPairs)
    return fail(ErrorCode::kInvalid, fmt::format("{} pairs on '{}', {} or more are wanted",
                                                 rows.size() / 2, kOneCore, kFewestPairs));
  auto prior = fit_mean(rows, ln_kept);
  double left = -noise;
  for (size_t i = 0; i < rows.size(); ++i) left += std::pow(ln_kept[i] - prior.ln_kept(rows[i]), 2);
  const double each =
      std::max(kLeastSpread, std::sqrt(std::max(0.0, left / static_cast<double>(rows.size()) / 3)));
  prior.spreads = {kOtherMachine, each, each, each};
  return prior;
}

std::vector<Study> core_pair_studies(const PairData& data) {
  std::map<std::string, PairData> by_card;
  for (const auto& sample : data.samples) by_card[sample.card].samples.push_back(sample);
  std::vector<Study> studies;
  for (const auto& [card, pairs] : by_card) studies.push_back(study_of(card, pairs));
  return studies;
}

}  // namespace tierpilot::sharing
