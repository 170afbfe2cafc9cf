#include "policies/sim/workload_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

#include "policies/sim/generator.h"
#include "policies/sim/trace/readers.h"

namespace tierpilot::sim {
namespace {

constexpr std::string_view kPrefix = "trace:";

Result<WorkloadSource> generated(const std::string& path) {
  auto options = read_generator_options(path);
  if (!options && !path.ends_with(".toml"))
    return fail(options.error().code, options.error().message +
                                          " (a trace is given as trace:KIND:FILE, such as "
                                          "trace:swf:FILE)");
  if (!options) return tl::unexpected(options.error());
  auto shared = std::make_shared<const GeneratorOptions>(std::move(*options));
  return WorkloadSource{[shared](const ClusterSpec& cluster, uint64_t seed) -> Result<Workload> {
                          return generate(*shared, cluster, seed);
                        },
                        std::nullopt, std::nullopt};
}

Status check_seekable(const std::string& path) {
  std::error_code unknown;  // what is not there the reader tells
  const auto kind = std::filesystem::status(path, unknown).type();
  using std::filesystem::file_type;
  if (kind != file_type::fifo && kind != file_type::socket) return {};
  return fail(
      ErrorCode::kInvalid,
      fmt::format("trace {}: it is a pipe, and read once for each seed; give a file", path));
}

using Read = std::function<Result<Trace>(const TraceOptions&)>;

TraceOptions with_seed(TraceOptions options, uint64_t seed) {
  if (options.datasets) options.datasets->seed += seed;
  return options;
}

// Reads once for the summary and what is wrong; each seed reads again, for its own data.
Result<WorkloadSource> traced(Read read, const TraceOptions& options) {
  auto first = read(options);
  if (!first) return tl::unexpected(first.error());
  return WorkloadSource{[read, options](const ClusterSpec&, uint64_t seed) -> Result<Workload> {
                          auto trace = read(with_seed(options, seed));
                          if (!trace) return tl::unexpected(trace.error());
                          return std::move(trace->workload);
                        },
                        std::nullopt, std::move(first->summary)};
}

ClusterSpec cluster_of(const std::vector<OpenbNode>& nodes) {
  std::map<std::tuple<uint32_t, uint64_t, uint32_t, std::string>, uint32_t> kinds;
  for (const auto& node : nodes)
    ++kinds[{node.cpu_milli / 1000, node.memory_bytes, node.gpus, node.gpu_model}];
  ClusterSpec cluster;
  cluster.name = "the trace's nodes";
  for (const auto& [kind, count] : kinds) {
    NodeGroup group;
    std::tie(group.units, group.memory_bytes, group.gpus, group.gpu_type) = kind;
    if (group.units == 0) continue;
    group.name = fmt::format("{}x{}", group.gpus, group.gpu_type.empty() ? "cpu" : group.gpu_type);
    group.name += fmt::format("-{}", cluster.groups.size() + 1);
    group.count = count;
    // The trace tells a node's memory only: half of it holds data, as in the daemon's example.
    group.fast_budget_bytes = group.memory_bytes / 2;
    cluster.groups.push_back(std::move(group));
  }
  return cluster;
}

Result<WorkloadSource> openb(const std::string& files, const TraceOptions& options) {
  const auto comma = files.find(',');
  if (comma == std::string::npos)
    return fail(ErrorCode::kInvalid,
                fmt::format("workload 'trace:openb:{}': it needs two files, PODS,NODES", files));
  const auto pods = files.substr(0, comma), nodes = files.substr(comma + 1);
  for (const std::string& path : {pods, nodes})
    if (auto status = check_seekable(path); !status) return tl::unexpected(status.error());
  auto whole = read_openb(pods, nodes, options);
  if (!whole) return tl::unexpected(whole.error());
  auto source = traced(
      [pods, nodes](const TraceOptions& wanted) -> Result<Trace> {
        auto trace = read_openb(pods, nodes, wanted);
        if (!trace) return tl::unexpected(trace.error());
        return std::move(trace->trace);
      },
      options);
  if (source) source->cluster = cluster_of(whole->nodes);
  return source;
}

}  // namespace

bool is_trace(std::string_view text) {
  return text.starts_with(kPrefix);
}

Result<WorkloadSource> open_workload(const std::string& text, const TraceOptions& options) {
  if (!is_trace(text)) return generated(text);
  const auto colon = text.find(':', kPrefix.size());
  const auto kind = text.substr(kPrefix.size(), colon - kPrefix.size());
  const auto files = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  if (kind == "openb") return openb(files, options);
  const std::map<std::string, Result<Trace> (*)(const std::filesystem::path&, const TraceOptions&)>
      readers{{"philly", read_philly}, {"swf", read_swf}, {"history", read_history}};
  const auto reader = readers.find(kind);
  if (reader == readers.end() || files.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("workload '{}': a trace is trace:philly:FILE, trace:swf:FILE, "
                            "trace:history:FILE or trace:openb:PODS,NODES",
                            text));
  if (auto status = check_seekable(files); !status) return tl::unexpected(status.error());
  return traced(
      [read = reader->second, files](const TraceOptions& wanted) { return read(files, wanted); },
      options);
}

}  // namespace tierpilot::sim
