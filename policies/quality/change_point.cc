#include "policies/quality/change_point.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "base/statistics.h"
#include "policies/quality/noise_scale.h"

namespace tierpilot::quality {
namespace {

constexpr size_t kBeside = 8;      // blocks on each side of a break
constexpr size_t kSearched = 400;  // newest blocks
constexpr double kNoises = 6;      // deviations that a jump stands out of the noise
constexpr double kSlopes = 3;      // times what the loss changes on either side

double level(Blocks blocks) {
  std::array<double, kBeside> losses;
  for (size_t i = 0; i < blocks.size(); ++i) losses[i] = blocks[i].loss;
  return upper_median_in_place(std::span(losses).first(blocks.size()));
}

double change_within(Blocks blocks) {
  const size_t half = blocks.size() / 2;
  return std::abs(level(blocks.first(half)) - level(blocks.last(half)));
}

bool breaks(Blocks before, Blocks after, double noise) {
  const double jump = std::abs(level(after) - level(before));
  return jump > kNoises * noise + kSlopes * (change_within(before) + change_within(after)) +
                    1e-9 * std::abs(level(before));
}

}  // namespace

size_t last_change_point(Blocks blocks) {
  std::vector<double> losses;
  for (const auto& block : blocks.last(std::min(blocks.size(), kSearched)))
    losses.push_back(block.loss);
  const double noise = noise_deviation(losses);
  const size_t first = std::max(kBeside, blocks.size() - losses.size() + kBeside);
  for (size_t cut = blocks.size() - std::min(blocks.size(), kBeside); cut >= first; --cut)
    if (breaks(blocks.subspan(cut - kBeside, kBeside), blocks.subspan(cut, kBeside), noise))
      return cut;
  return 0;
}

}  // namespace tierpilot::quality
