#include "policies/sharing/predict/pairs/pair_law.h"

#include <algorithm>
#include <cmath>

#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

constexpr double kMostLevel = 0.6;
constexpr double kLevelStep = 0.02;
// Few jobs that are alike have a near median that says nothing of others; so the law is left only
// where it is off by so many times as much.
constexpr double kWrong = 2;
// Nobody is all the time on the GPU or never: use is measured in samples.
constexpr double kLeastPart = 0.02;

double kept(double ln_longer) {
  return 1 / (1 + std::exp(ln_longer));
}

class PairLaw final : public Regressor {
 public:
  explicit PairLaw(size_t column) : column_(column) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    double best = penalised_error(0, rows, targets);
    level_ = 0;
    for (double level = -kMostLevel; level <= kMostLevel; level += kLevelStep) {
      const double error = penalised_error(level, rows, targets);
      if (error < best) {
        best = error;
        level_ = level;
      }
    }
    median_->fit(rows, targets);
    double of_median = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      of_median += std::abs(median_->predict(rows[i]) - targets[i]);
    is_median_ = kWrong * of_median / static_cast<double>(rows.size()) < best;
  }

  double predict(const Row& row) const override {
    return is_median_ ? median_->predict(row) : kept(row[column_] + level_);
  }

 private:
  // A level of 0 is what the law says by itself: without much to gain nothing else is taken.
  double penalised_error(double level, const std::vector<Row>& rows,
                         const std::vector<double>& targets) const {
    double sum = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      sum += std::abs(kept(rows[i][column_] + level) - targets[i]);
    return sum / static_cast<double>(rows.size()) + level * level;
  }

  const size_t column_;
  double level_ = 0;
  bool is_median_ = false;
  std::unique_ptr<Regressor> median_ = make_median();
};

}  // namespace

double ln_longer(const PairSample& sample, const GpuParts& parts) {
  const auto a = parts.of(sample.card, sample.victim);
  const auto b = parts.of(sample.card, sample.neighbour);
  // Whatever part it is, two jobs of one model have the same.
  const double alike =
      sample.victim.model == sample.neighbour.model ? 2 * a.deviation * b.deviation : 0;
  return ln_longer_on_shared_host({a.mean, 1 / sample.victim.alone},
                                  {b.mean, 1 / sample.neighbour.alone}, alike);
}

double ln_kept_on_shared_host(const PairSample& sample, double victim_milli,
                              double neighbour_milli) {
  const auto turns = [](const PairJob& job, double milli) {
    return TakesTurns{std::clamp(milli / kWholeUnit, kLeastPart, 1 - kLeastPart), 1 / job.alone};
  };
  return ln_kept_on_shared_host(turns(sample.victim, victim_milli),
                                turns(sample.neighbour, neighbour_milli));
}

std::unique_ptr<Regressor> make_pair_law(size_t column) {
  return std::make_unique<PairLaw>(column);
}

}  // namespace tierpilot::sharing
