#include "daemon/probe/active/classes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tierpilot {
namespace {

constexpr double kUnmeasured = 1e300;
// Figures that differ by less are one class: noise must not decide.
constexpr double kSameLatency = 1.1;
constexpr double kSameBandwidth = 1.25;

std::vector<size_t> indices(size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

// For each value the number of its class, which reaches from its smallest value to `ratio` times
// it.
std::vector<int> classes_of(const std::vector<double>& values, double ratio) {
  auto order = indices(values.size());
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<int> classes(values.size());
  double smallest = 0;
  int current = 0;
  for (const size_t i : order) {
    if (values[i] > smallest * ratio) {
      smallest = values[i];
      ++current;
    }
    classes[i] = current;
  }
  return classes;
}

// (class of latency, class of bandwidth), both fast to slow.
std::vector<std::pair<int, int>> speeds_of(const std::vector<TierMeasurement>& tiers) {
  std::vector<double> latencies_ns, times_per_byte;
  for (const auto& tier : tiers) {
    latencies_ns.push_back(tier.latency_p50_ns.value.value_or(kUnmeasured));
    times_per_byte.push_back(1 / tier.read_gb_per_s.value.value_or(1 / kUnmeasured));
  }
  const auto near = classes_of(latencies_ns, kSameLatency);
  const auto wide = classes_of(times_per_byte, kSameBandwidth);
  std::vector<std::pair<int, int>> speeds;
  for (size_t i = 0; i < tiers.size(); ++i) speeds.emplace_back(near[i], wide[i]);
  return speeds;
}

}  // namespace

std::vector<size_t> rank_tiers(const std::vector<TierMeasurement>& tiers) {
  const auto speeds = speeds_of(tiers);
  auto order = indices(tiers.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return speeds[a] < speeds[b]; });
  return order;
}

void assign_classes(std::vector<TierMeasurement>& tiers) {
  const auto speeds = speeds_of(tiers);
  std::map<std::pair<int, int>, int> numbers;
  for (size_t i = 0; i < tiers.size(); ++i)
    if (tiers[i].latency_p50_ns.value) numbers[speeds[i]] = 0;
  int next = 0;
  for (auto& [speed, number] : numbers) number = next++;
  for (size_t i = 0; i < tiers.size(); ++i)
    tiers[i].tier_class = tiers[i].latency_p50_ns.value ? numbers[speeds[i]] : -1;
}

}  // namespace tierpilot
