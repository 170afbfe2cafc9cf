#include "tools/lab/scene.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/config.h"
#include "policies/sim/trace/options_reader.h"

namespace tierpilot::lab {
namespace {

Result<sim::ClusterSpec> cluster_for(const std::string& file, const sim::WorkloadSource& source) {
  if (!file.empty()) return sim::read_cluster_spec(file);
  if (source.cluster) return *source.cluster;
  return fail(ErrorCode::kInvalid, "--cluster is needed: this workload does not bring a cluster");
}

Result<sim::TraceOptions> trace_options_from(const std::string& path) {
  if (path.empty()) return sim::TraceOptions{};
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  auto options = sim::read_trace_options(*reader);
  if (auto status = reader->finish(); !status) return tl::unexpected(status.error());
  return options;
}

}  // namespace

CLI::Option* add_scene_options(CLI::App& command, SceneNames& names) {
  auto* workload = command
                       .add_option("--workload", names.workload,
                                   "a generator (TOML), or trace:philly:FILE, trace:swf:FILE, "
                                   "trace:history:FILE, trace:openb:PODS,NODES")
                       ->type_name("FILE");
  command.add_option("--cluster", names.cluster, "the cluster (TOML)")
      ->needs(workload)
      ->type_name("FILE");
  command
      .add_option("--trace-options", names.trace_options,
                  "the part of a trace to take, its rate, its data (TOML)")
      ->needs(workload)
      ->type_name("FILE");
  return workload;
}

Result<Scene> open_scene(const SceneNames& names) {
  if (!names.trace_options.empty() && !sim::is_trace(names.workload))
    return fail(
        ErrorCode::kInvalid,
        fmt::format("--trace-options: workload '{}' is generated, not a trace", names.workload));
  const auto trace_options = trace_options_from(names.trace_options);
  if (!trace_options) return tl::unexpected(trace_options.error());
  auto source = sim::open_workload(names.workload, *trace_options);
  if (!source) return tl::unexpected(source.error());
  auto cluster = cluster_for(names.cluster, *source);
  if (!cluster) return tl::unexpected(cluster.error());
  return Scene{std::move(*cluster), std::move(*source)};
}

nlohmann::ordered_json trace_json(const sim::TraceSummary& summary) {
  return {{"format", summary.format},
          {"rows", summary.rows},
          {"tasks", summary.tasks},
          {"span_s", static_cast<double>(summary.span_ns) / 1e9},
          {"skipped", summary.skipped},
          {"first_skipped", summary.first_skipped},
          {"not_in_the_trace", summary.derived}};
}

std::string left_out(const std::string& what, uint64_t tasks) {
  const char* why = what == "rejected"
                        ? " (no node has their units, their GPUs or a fast_budget for their data)"
                        : "";
  return fmt::format("tasks {}: {}{}; the times leave them out", what, tasks, why);
}

std::string trace_note(const nlohmann::ordered_json& answer) {
  if (!answer.contains("trace")) return {};
  const auto& trace = answer["trace"];
  std::string note;
  for (const auto& derived : trace["not_in_the_trace"])
    note += fmt::format("\nNot in the trace: {}", derived.get<std::string>());
  if (!note.empty()) note += '\n';
  uint64_t count = 0;
  std::vector<std::string> reasons;
  for (const auto& [reason, rows] : trace["skipped"].items()) {
    count += rows.get<uint64_t>();
    reasons.push_back(fmt::format("{} ({})", reason, rows.get<uint64_t>()));
  }
  if (count == 0) return note;
  return note + fmt::format("\nRows left out: {} of the trace's {}: {}; the first is {}\n", count,
                            trace["rows"].get<uint64_t>(), fmt::join(reasons, ", "),
                            trace["first_skipped"].get<std::string>());
}

}  // namespace tierpilot::lab
