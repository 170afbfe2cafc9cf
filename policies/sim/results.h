// What a simulated run amounts to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tierpilot::sim {

struct Spread {
  double mean = 0, p50 = 0, p99 = 0;
};
// By nearest rank; `values` is reordered. Nothing for no values.
Spread spread_of(std::vector<float>& values);

// The state of the cluster at one time, for plots.
struct Sample {
  double at_s = 0;
  uint32_t queued = 0;
  uint32_t busy_units = 0;
};

struct RunResult {
  uint64_t tasks = 0;       // of the workload
  uint64_t succeeded = 0;   // the figures below are theirs
  uint64_t failed = 0;      // out of attempts, or their data was lost
  uint64_t rejected = 0;    // larger than any node
  uint64_t unfinished = 0;  // nothing could happen to them any more
  Spread wait_s;            // submit to start
  Spread response_s;        // submit to end
  double utilisation = 0;   // busy share of the units over the makespan
  uint64_t hit_bytes = 0;
  uint64_t promoted_bytes = 0;
  uint64_t fetched_bytes = 0;
  uint64_t evicted_bytes = 0;
  uint64_t evicted_written_bytes = 0;
  // Jain's index of the users' mean slowdowns, 1 is even (Jain, Chiu, Hawe: A Quantitative Measure
  // of Fairness and Discrimination, DEC TR-301, 1984). A task's slowdown is its response over what
  // it would take alone on the fastest node with its data in fast memory.
  double fairness = 1;
  double makespan_s = 0;  // first submit to last end
  uint64_t node_failures = 0;
  uint64_t gpu_failures = 0;
  uint64_t restarts = 0;  // attempts after a task's first
  uint64_t decisions = 0;
  uint64_t holds = 0;    // times that a task was kept back in place of a decision
  uint64_t rewards = 0;  // decisions that were rewarded
  double reward_mean = 0;
  uint64_t events = 0;
  std::vector<Sample> samples;     // at most kMostSamples, evenly spaced in time
  std::vector<float> responses_s;  // sorted, of the tasks that succeeded
  static constexpr size_t kMostSamples = 1024;
};

}  // namespace tierpilot::sim
