// Readers of job traces: file in, Workload and an account of the reading out. They take any file of
// these formats, other column orders, separators and line ends included. What is wrong in a row
// makes that row skipped and counted; what is wrong with the file is an error that names file, line
// and what to do. A trace's task has duration * kReferenceOperationsPerSecond operations.
#pragma once

#include <filesystem>

#include "policies/sim/trace/trace.h"

namespace tierpilot::sim {

// CSV of GPU jobs in the manner of the Philly trace (Jeon et al., USENIX ATC 2019) as cleaned by
// the Sia artifact: timestamp, duration (s), num_gpus, gpu_time (GPU s), cluster (whose job it is).
// Where duration is missing, gpu_time / num_gpus is taken; where cluster is, all are one user.
// Columns of the Helios traces (submit_time, gpu_num, cpu_num, user, vc) are known, too.
Result<Trace> read_philly(const std::filesystem::path& path, const TraceOptions& options);

struct OpenbNode {
  std::string name;
  uint32_t cpu_milli = 0;
  uint64_t memory_bytes = 0;
  uint32_t gpus = 0;
  std::string gpu_model;  // empty: no GPU
};

struct OpenbTrace {
  Trace trace;
  std::vector<OpenbNode> nodes;
};

// Alibaba's cluster-trace-gpu-v2023: pods (cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec,
// qos, creation_time, scheduled_time, deletion_time in s) and nodes (sn, cpu_milli, memory_mib,
// gpu, model). A pod arrives when it was created and runs for deletion - scheduled; its qos stands
// for its user. Of several types of GPU that a pod may have ("A|B") the first that a node has is
// taken.
Result<OpenbTrace> read_openb(const std::filesystem::path& pods, const std::filesystem::path& nodes,
                              const TraceOptions& options);

// The Standard Workload Format of the Parallel Workloads Archive, version 2 (Chapin et al., JSSPP
// 1999): 18 fields a line, -1 for what is not known, comments after ";". A processor is a unit;
// allocated figures come before requested ones. A job that never ran is skipped, and that it waits
// for a preceding job is not simulated.
Result<Trace> read_swf(const std::filesystem::path& path, const TraceOptions& options);

// What `tierctl history export` writes: JSON lines, see docs/reference/traces.md.
Result<Trace> read_history(const std::filesystem::path& path, const TraceOptions& options);

}  // namespace tierpilot::sim
