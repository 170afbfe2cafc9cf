// Pods and nodes of Alibaba's cluster-trace-gpu-v2023 ("openb"), and any other lists of that
// format.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

struct Pod {
  Request request;
  JobClass job_class = JobClass::kBestEffort;
  double created_s = 0;
  double run_s = 0;  // 0: not told
};

struct PodTrace {
  std::vector<Node> nodes;
  std::vector<std::string> models;  // by number
  std::vector<Pod> pods;
  std::map<std::string, uint64_t> skipped;  // rows of both by the reason
  std::string first_skipped;                // "FILE:LINE: what and why"
};

// Pods: cpu_milli, memory_mib, num_gpu and, where there are, gpu_milli (thousandths of a GPU, where
// num_gpu is 1), gpu_spec ("A|B"), qos (LS and all but BE: latency-sensitive), creation_time,
// scheduled_time, deletion_time (s). Nodes: sn, cpu_milli, memory_mib, gpu (empty: none), model. A
// row that cannot be read is skipped and counted; kInvalid where no pod or GPU is left.
Result<PodTrace> read_pods(const std::filesystem::path& pods, const std::filesystem::path& nodes);

// Seeded lists in the likeness of the published ones.
PodTrace generate_pods(uint64_t seed, uint32_t nodes, uint32_t pods);

}  // namespace tierpilot::sharing
