// What a run of tasks amounts to.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tierpilot::tierload {

// One ended task, as far as the figures need it. Times are wall milliseconds, 0: never.
struct TaskFacts {
  uint64_t id = 0;
  std::string name;
  std::string node;
  bool succeeded = false;
  std::string reason;
  int64_t submitted_ms = 0;
  int64_t started_ms = 0;
  int64_t finished_ms = 0;
  double data_ms = 0;  // before its start, from the assignment until its node had all its data
  double run_ms = 0;   // its processes
  double cpu_ms = 0;   // of these
  uint64_t local_bytes = 0;
  uint64_t promoted_bytes = 0;
  uint64_t fetched_bytes = 0;
  uint64_t evicted_bytes = 0;
};

struct Spread {
  double mean, p99;
};

// The smallest value that at least a share q of the values does not exceed (nearest rank).
// `values` is not empty.
double percentile(std::vector<double> values, double q);
// Nothing for no values.
std::optional<Spread> spread_of(const std::vector<double>& values);

struct Summary {
  size_t tasks = 0;
  size_t failed = 0;
  std::optional<Spread> wait_ms;           // submit to start
  std::optional<Spread> data_ms;           // of the wait: until its data was there
  std::optional<Spread> run_ms;            // of its processes
  std::optional<Spread> cpu_ms;            // time of processors, of these
  std::optional<Spread> response_ms;       // submit to finish
  std::optional<double> local_byte_share;  // of all bytes served: were in the fast tier already
  uint64_t evicted_bytes = 0;
};

// Times of failed tasks do not count.
Summary summarize(const std::vector<TaskFacts>& tasks);

// Missing figures are null with the reason in "<key>_unavailable".
nlohmann::ordered_json summary_json(const Summary& summary);

}  // namespace tierpilot::tierload
