#include "daemon/probe/loops/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/histogram.h"
#include "base/statistics.h"

namespace tierpilot {
namespace {

constexpr double kGoodSpread = 0.10, kFairSpread = 0.30;
constexpr double kGoodOthers = 0.25, kFairOthers = 0.60;
constexpr int kGoodRounds = 3;

Grade grade_of(double value, double good, double fair) {
  return value <= good ? Grade::kGood : value <= fair ? Grade::kFair : Grade::kNoisy;
}

std::string others_text(const Surroundings& around) {
  if (around.others_cpu_share)
    return fmt::format("others took {:.0f} % of the CPUs", *around.others_cpu_share * 100);
  return fmt::format("load {:.2f} on {} CPU{}", around.load_1min, around.cpus,
                     around.cpus == 1 ? "" : "s");
}

}  // namespace

double spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double middle = median(values);
  return middle > 0 ? (*high - *low) / middle : 0;
}

double weighted_quantile(LatencyCounts counts, double q) {
  std::sort(counts.begin(), counts.end());
  uint64_t total = 0;
  for (const auto& [value, count] : counts) total += count;
  const auto wanted = static_cast<uint64_t>(std::ceil(q * static_cast<double>(total)));
  uint64_t seen = 0;
  for (const auto& [value, count] : counts)
    if ((seen += count) >= std::max<uint64_t>(wanted, 1)) return static_cast<double>(value);
  return 0;
}

LatencyCounts bucketed(const LatencyCounts& counts) {
  std::map<uint64_t, uint64_t> buckets;
  for (const auto& [ns, count] : counts)
    buckets[Histogram::bucket_floor(Histogram::bucket_of(ns))] += count;
  return {buckets.begin(), buckets.end()};
}

std::string_view grade_name(Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "good";
    case Grade::kFair:
      return "fair";
    case Grade::kNoisy:
      break;
  }
  return "noisy";
}

Quality assess(double spread, int rounds, const Surroundings& around) {
  if (rounds < 1) return {};
  if (rounds == 1)
    return {Grade::kNoisy,
            fmt::format("a single round does not tell its spread; {}", others_text(around))};
  const double others = around.others_cpu_share.value_or(around.load_1min / around.cpus);
  const auto grade = std::max({grade_of(spread, kGoodSpread, kFairSpread),
                               grade_of(others, kGoodOthers, kFairOthers),
                               rounds < kGoodRounds ? Grade::kFair : Grade::kGood});
  return {grade, fmt::format("spread {:.1f} % over {} rounds; {}", spread * 100, rounds,
                             others_text(around))};
}

}  // namespace tierpilot
