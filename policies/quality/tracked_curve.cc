#include "policies/quality/tracked_curve.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tierpilot::quality {
namespace {

constexpr double kJoinedShare = 0.12;  // of its age, that becomes one point
constexpr size_t kTracked = 200;       // newest blocks whose residuals count

Blocks newest(Blocks blocks, size_t count) {
  return blocks.last(std::min(blocks.size(), count));
}

}  // namespace

std::vector<WeightedPoint> joined_by_age(Blocks blocks, double noise) {
  std::vector<WeightedPoint> points;
  double low = blocks.back().loss, high = low;
  for (size_t end = blocks.size(); end > 0;) {
    const size_t age = blocks.size() - end;
    const size_t joined = std::min(end, std::max<size_t>(1, std::lround(kJoinedShare * age)));
    LossHistory::Block sum{0, 0, 0};
    for (size_t i = end - joined; i < end; ++i) {
      sum.iteration += blocks[i].iteration * blocks[i].count;
      sum.loss += blocks[i].loss * blocks[i].count;
      sum.count += blocks[i].count;
    }
    points.push_back({sum.iteration / sum.count, sum.loss / sum.count, sum.count});
    low = std::min(low, points.back().loss);
    high = std::max(high, points.back().loss);
    end -= joined;
  }
  std::reverse(points.begin(), points.end());
  // No curve of three parameters fits to less than a hundredth of what has changed.
  const double misfit = 0.01 * (high - low) + 1e-12 * std::abs(high) + 1e-300;
  for (auto& point : points)
    point.weight = misfit * misfit / (noise * noise / point.weight + misfit * misfit);
  return points;
}

double best_smoothing(const FittedCurve& curve, Blocks blocks) {
  constexpr std::array kChoices{0.9, 0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02};
  std::array<double, kChoices.size()> means{}, errors{};
  const auto tracked = newest(blocks, kTracked);
  // Started by the mean of some, or slow choices would be judged by how they begin.
  const size_t start = std::min<size_t>(tracked.size(), 1 + tracked.size() / 5);
  double first = 0;
  for (const auto& block : tracked.first(start))
    first += (block.loss - curve.at(block.iteration)) / start;
  means.fill(first);
  for (const auto& block : tracked.subspan(start)) {
    const double residual = block.loss - curve.at(block.iteration);
    for (size_t i = 0; i < kChoices.size(); ++i) {
      errors[i] += std::abs(residual - means[i]);
      means[i] += kChoices[i] * (residual - means[i]);
    }
  }
  return kChoices[std::min_element(errors.begin(), errors.end()) - errors.begin()];
}

TrackedCurve track(const FittedCurve& curve, Blocks blocks, double smoothing) {
  const auto tracked = newest(blocks, kTracked);
  double sum = 0, total = 0, weight = 1;
  for (auto block = tracked.rbegin(); block != tracked.rend(); ++block) {
    sum += weight * (block->loss - curve.at(block->iteration));
    total += weight;
    weight *= 1 - smoothing;
  }
  return {curve, sum / total};
}

}  // namespace tierpilot::quality
