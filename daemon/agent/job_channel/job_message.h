// What a job says through its channel: one JSON object a line. The format, for whoever writes a
// client: docs/reference/job-channel.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/attempt.h"

namespace tierpilot::agent {

inline constexpr size_t kMaxJobLineBytes = 64 << 10;
inline constexpr size_t kMaxJobMeasures = 32;

struct JobProgress {
  uint64_t iteration = 0;
  uint64_t iterations = 0;  // of how many; 0: not said
  uint64_t samples = 0;
  std::optional<double> loss;
  std::vector<std::pair<std::string, double>> measures;
};

struct JobReport {
  AttemptId attempt;
  int64_t at_ms = 0;  // wall time
  JobProgress progress;
  uint64_t cpu_ns = 0;       // of all its processes until then
  uint32_t milli_units = 0;  // of an elastic one
};

// kInvalid says what is wrong with it, for the job's own log.
Result<JobProgress> parse_job_line(std::string_view line);

// What the job is told, each with its end of line.
std::string job_cores_line(double cores);
std::string job_stop_line(const std::string& reason);
std::string job_error_line(const std::string& what);

}  // namespace tierpilot::agent
