// What a simulation is of: a cluster and where its tasks come from, as the command line names them.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "policies/sim/workload_source.h"

namespace tierpilot::lab {

struct SceneNames {
  std::string cluster;  // file; empty: the one that the trace was taken on
  std::string workload;
  std::string trace_options;  // file; may be empty
};

struct Scene {
  sim::ClusterSpec cluster;
  sim::WorkloadSource source;
};

// --cluster, --workload and --trace-options; the second is returned.
CLI::Option* add_scene_options(CLI::App& command, SceneNames& names);

Result<Scene> open_scene(const SceneNames& names);

// What a command says of a trace, as "trace" of its answer.
nlohmann::ordered_json trace_json(const sim::TraceSummary& summary);
// What a warning says of tasks that are not in the times: `what` is failed, rejected or unfinished.
std::string left_out(const std::string& what, uint64_t tasks);

// For people: what is not in the answer's trace and was made up, and which rows were left out and
// why; lines or "".
std::string trace_note(const nlohmann::ordered_json& answer);

}  // namespace tierpilot::lab
