// What the lifecycle needs of the executor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

// What an elastic attempt may compute on: any of these CPUs, and of their time so many cores'.
struct CpuShare {
  std::vector<int> cpus;
  double cores = 0;

  bool operator==(const CpuShare&) const = default;
};

struct LaunchOrder {
  const Assignment& assignment;
  const std::vector<ServedItem>& datasets;
  const std::vector<int>& cpus;
  const std::string& gpu;  // UUID of the one that it has a part of; empty: of none
};

// After a launch without error TaskTable::exited() is called once, and nothing of it from within
// launch().
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  virtual Status launch(const LaunchOrder& order) = 0;
  virtual void cancel(AttemptId attempt, const std::string& reason) = 0;
  // Or resumes it.
  virtual Status pause(AttemptId attempt, bool paused) = 0;
  // From now on, of one that has started.
  virtual void confine(AttemptId attempt, const CpuShare& share) = 0;
  // To so many thousandths of its GPU.
  virtual void confine_gpu(AttemptId attempt, uint32_t milli) = 0;
  // No attempt of the task is remembered any more.
  virtual void forget(uint64_t task) = 0;
  // The coordinator has the attempt's end for good.
  virtual void acknowledged(AttemptId attempt) = 0;
};

}  // namespace tierpilot::agent
