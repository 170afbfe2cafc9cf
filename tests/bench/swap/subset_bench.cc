// The published learner, pre-trained on a part of the data: recorded steps that are replayed
// half-way between their peak and the least with which letting everything leave gets through, over
// a link that takes as long for the peak as the step.
//
//   bench_swap_subset LOG...     logs as of tiertool swap record
//
// A pass over the data is kPublishedRounds steps. Pre-training on a part is so many of them, and
// its last plan is where the training on all of the data starts; what it has learned beside is not
// kept, as in a plan file. Means over kSeeds seeds.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <vector>

#include "policies/swap/machine/step_run.h"
#include "policies/swap/published_replay.h"
#include "policies/swap/readers.h"

namespace {

using namespace tierpilot::swap;
constexpr int kSeeds = 10;
constexpr double kNear = 1.05;  // of the best time that any of a net's runs found
constexpr int kParts[]{0, 20, 40, 60, 80, 100};

using Times = std::vector<double>;  // overheads by step; infinite: no room

struct Trained {
  Times times{};
  std::vector<char> plan{};
};

Trained train(const Graph& graph, const Limits& limits, uint64_t seed, int rounds,
              std::vector<char> plan) {
  PublishedReplay replay(graph, limits, seed, std::move(plan));
  Trained trained;
  for (int round = 0; round < rounds; ++round) {
    const auto outcome = replay.round();
    trained.times.push_back(outcome.done ? outcome.overhead()
                                         : std::numeric_limits<double>::infinity());
  }
  trained.plan = replay.plan();
  return trained;
}

// Steps until the first one that is near the best; all of them where none is.
double steps_until(const Times& times, double near) {
  const auto found = std::find_if(times.begin(), times.end(), [&](double t) { return t <= near; });
  return static_cast<double>(found - times.begin()) + (found == times.end() ? 0 : 1);
}

struct Row {
  double steps = 0;      // until near the best
  double best_part = 0;  // the best time over the mean of the steps that got through
  double failed = 0;     // part of the steps that had no room
};

Row row_of(const std::vector<Times>& runs, double best) {
  Row row;
  for (const auto& times : runs) {
    double sum = 0, done = 0;
    for (const double time : times)
      if (time < std::numeric_limits<double>::infinity()) sum += time, ++done;
    row.steps += steps_until(times, kNear * best) / kSeeds;
    row.best_part += (sum > 0 ? best * done / sum : 0) / kSeeds;
    row.failed += (1 - done / static_cast<double>(times.size())) / kSeeds;
  }
  return row;
}

// By halving, to a hundredth of the peak.
int64_t least_bytes(const Graph& graph, Limits limits, int64_t peak_bytes) {
  int64_t low = 0, high = 100;
  while (high - low > 1) {
    const auto middle = (low + high) / 2;
    limits.budget_bytes = peak_bytes / 100 * middle;
    (PublishedReplay(graph, limits, 1).round().done ? high : low) = middle;
  }
  return peak_bytes / 100 * high;
}

void sweep(const char* log) {
  const auto graph = read_dtr_log(log);
  if (!graph) {
    std::fprintf(stderr, "error: %s\n", graph.error().message.c_str());
    std::exit(1);
  }
  const auto base = baseline(*graph);
  Limits limits{.thrash_limit = 10, .recompute = false};
  limits.link = {
      .gb_per_s = static_cast<double>(base.peak_bytes) / static_cast<double>(base.time_ns),
      .latency_ns = 10'000};
  limits.budget_bytes = (least_bytes(*graph, limits, base.peak_bytes) + base.peak_bytes) / 2;
  std::vector<std::vector<Times>> by_part;
  double best = std::numeric_limits<double>::infinity();
  for (const int part : kParts) {
    auto& runs = by_part.emplace_back();
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      auto before = train(*graph, limits, seed, kPublishedRounds * part / 100, {});
      runs.push_back(
          train(*graph, limits, seed + kSeeds, kPublishedRounds, std::move(before.plan)).times);
      best = std::min(best, *std::min_element(runs.back().begin(), runs.back().end()));
    }
  }
  const auto cold = row_of(by_part.front(), best);
  for (size_t i = 0; i < by_part.size(); ++i) {
    const auto row = row_of(by_part[i], best);
    std::printf("| %s | %.2f | %d %% | %.1f | %.2f | %.3f | %.3f | %.3f |\n",
                std::filesystem::path(log).stem().c_str(),
                static_cast<double>(limits.budget_bytes) / static_cast<double>(base.peak_bytes),
                kParts[i], row.steps, row.steps > 0 ? cold.steps / row.steps : 0, row.best_part,
                best, row.failed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::printf(
      "| net | budget to peak | pre-trained on | steps until within 5 %% of the best | cold "
      "start's over that | "
      "best time over the mean | best overhead | steps without room |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (int i = 1; i < argc; ++i) sweep(argv[i]);
}
