#include "policies/quality/outliers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/statistics.h"

namespace tierpilot::quality {
namespace {

constexpr size_t kWindow = 7;
constexpr double kDeviations = 8;  // further out, a report is an outlier

}  // namespace

std::vector<LossHistory::Block> without_outliers(Blocks blocks, double noise) {
  std::vector<LossHistory::Block> kept(blocks.begin(), blocks.end());
  // A steep beginning is no outlier, and the fit does not mind one there.
  for (size_t i = kWindow; i < blocks.size(); ++i) {
    const size_t start =
        std::clamp<size_t>(i, kWindow / 2, blocks.size() - 1 - kWindow / 2) - kWindow / 2;
    std::array<double, kWindow> losses, distances;
    for (size_t j = 0; j < kWindow; ++j) losses[j] = blocks[start + j].loss;
    const double middle = upper_median_in_place(losses);
    for (size_t j = 0; j < kWindow; ++j) distances[j] = std::abs(losses[j] - middle);
    const double spread = std::max(noise, kDeviationOfMad * upper_median_in_place(distances));
    if (std::abs(blocks[i].loss - middle) > kDeviations * spread) kept[i].loss = middle;
  }
  return kept;
}

}  // namespace tierpilot::quality
