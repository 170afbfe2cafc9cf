// From the values of several rounds to one figure, and how far it can be believed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tierpilot {

using LatencyCounts = std::vector<std::pair<uint64_t, uint64_t>>;  // (ns, how often)

// (largest - smallest) / median, of at least one value; 0 with one.
double spread(const std::vector<double>& values);
// The smallest value that a share q of the counts does not exceed; 0 without counts. Exact, where a
// Histogram is within 1/16.
double weighted_quantile(LatencyCounts counts, double q);
// Merged into the buckets of base/histogram.h, each by its floor, ascending.
LatencyCounts bucketed(const LatencyCounts& counts);

enum class Grade { kGood, kFair, kNoisy };
std::string_view grade_name(Grade grade);

struct Quality {
  Grade grade = Grade::kNoisy;
  std::string reason = "not measured";
};

// What was going on while figures were taken.
struct Surroundings {
  int cpus = 1;
  double load_1min = 0;  // of the machine, before measuring
  // The share of all CPUs' time that others had meanwhile, stolen time included; absent where
  // /proc/stat does not tell.
  std::optional<double> others_cpu_share{};
};

// Good: at least 3 rounds within 10 % and others took at most a quarter of the CPUs. Noisy: a
// single round, or rounds over 30 % apart, or others took over 60 %. Fair: between. Where others'
// share is not known the load average per CPU stands in for it.
Quality assess(double spread, int rounds, const Surroundings& around);

}  // namespace tierpilot
