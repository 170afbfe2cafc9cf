// What a job says through its channel: one JSON object a line. The format, for whoever writes a
// client: docs/reference/job-channel.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
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
  uint32_t milli_units = 0;  // of an elastic one or a part of a unit
  uint64_t waited_ns = 0;    // for a CPU; see CpuShares
  bool takes_checkpoints = false;
};

// A file of the job's folder that holds its state.
struct JobCheckpoint {
  std::string path;  // absolute, or from the job's folder on
  uint64_t iteration = 0;
  uint64_t saving_ms = 0;  // that the job took to write it
};

// It would save its state if it was asked to.
struct JobTakesCheckpoints {};

using JobMessage = std::variant<JobProgress, JobCheckpoint, JobTakesCheckpoints>;

// kInvalid says what is wrong with it, for the job's own log.
Result<JobMessage> parse_job_line(std::string_view line);

// What the job is told, each with its end of line.
std::string job_cores_line(double cores);
std::string job_share_line(uint32_t milli);
std::string job_stop_line(const std::string& reason);
std::string job_error_line(const std::string& what);
std::string job_checkpoint_saved_line(uint64_t iteration, uint64_t bytes, uint64_t ms);
std::string job_checkpoint_failed_line(uint64_t iteration, const std::string& what);
std::string job_checkpoint_now_line(const std::string& reason);
std::string job_checkpoint_every_line(double interval_s, double cost_s, double failures_per_h);
std::string job_checkpoint_safe_line(uint64_t iteration, uint32_t copies);

}  // namespace tierpilot::agent
