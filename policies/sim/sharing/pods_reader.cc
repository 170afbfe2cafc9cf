#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table/cell.h"
#include "base/table/csv_table.h"
#include "policies/sim/sharing/pods.h"
#include "policies/sim/trace/trace_builder.h"

namespace tierpilot::sharing {
namespace {

using sim::Fault;

constexpr double kMaxCpuMilli = 4e9;
constexpr double kMaxMemoryMib = 1e9;
constexpr size_t kMaxNodes = 100'000;
constexpr size_t kMaxPods = 5'000'000;
constexpr size_t kMaxModels = 64;  // bits of Request::models

template <class Row>
Status each_row(CsvTable& table, Row row) {
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return {};
    if (auto status = row(); !status) return status;
  }
}

uint64_t mib(double count) {
  return static_cast<uint64_t>(count * (1 << 20));
}

std::string_view trimmed_name(std::string_view name) {
  const auto first = name.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return name.substr(first, name.find_last_not_of(" \t") - first + 1);
}

// Counts the row, which is left out.
void skip(const CsvTable& row, const Fault& fault, PodTrace& trace) {
  ++trace.skipped[fault.reason];
  if (trace.first_skipped.empty())
    trace.first_skipped = fmt::format("{}: {}", row.place(), fault.detail);
}

uint32_t whole(std::string_view column, double value, std::optional<Fault>& fault) {
  if (!fault && value != std::floor(value))
    fault = Fault{"not a whole number", fmt::format("column {}: not a whole number", column)};
  return static_cast<uint32_t>(value);
}

Result<uint8_t> model_number(std::string_view name, const CsvTable& row,
                             std::vector<std::string>& models) {
  const auto known = std::find(models.begin(), models.end(), name);
  if (known == models.end()) {
    if (models.size() == kMaxModels)
      return fail(ErrorCode::kExhausted,
                  fmt::format("node list {}: more than {} models of GPU", row.place(), kMaxModels));
    models.emplace_back(name);
    return static_cast<uint8_t>(models.size() - 1);
  }
  return static_cast<uint8_t>(known - models.begin());
}

struct NodeColumns {
  size_t cpu, memory, gpus;
  std::optional<size_t> model;
};

// Some columns of both have the same names, and their figures would pass.
Status is_list_of(const CsvTable& table, const char* what, const char* other,
                  std::initializer_list<std::string_view> columns_of_other) {
  if (!table.find(columns_of_other)) return {};
  return fail(ErrorCode::kInvalid, fmt::format("{}: it is a list of {}, where one of {} is "
                                               "wanted: were they given in the wrong order?",
                                               table.place(), other, what));
}

Result<NodeColumns> node_columns(const CsvTable& table) {
  if (auto right = is_list_of(table, "nodes", "pods", {"gpu_milli", "qos", "creation_time"});
      !right)
    return tl::unexpected(right.error());
  const auto cpu = table.require({"cpu_milli"});
  if (!cpu) return tl::unexpected(cpu.error());
  const auto memory = table.require({"memory_mib"});
  if (!memory) return tl::unexpected(memory.error());
  const auto gpus = table.require({"gpu", "num_gpu"});
  if (!gpus) return tl::unexpected(gpus.error());
  return NodeColumns{*cpu, *memory, *gpus, table.find({"model", "gpu_model"})};
}

// An error: it has one model too many.
Result<Node> read_node(const CsvTable& row, const NodeColumns& columns,
                       std::vector<std::string>& models, std::optional<Fault>& fault) {
  Node node;
  node.cpu_milli = static_cast<uint32_t>(
      sim::number_or_fault("cpu_milli", row.cell(columns.cpu), 0, kMaxCpuMilli, fault));
  node.memory_bytes =
      mib(sim::number_or_fault("memory_mib", row.cell(columns.memory), 0, kMaxMemoryMib, fault));
  const auto gpus = row.cell(columns.gpus);
  if (!gpus.empty())  // else it is of cores alone
    node.units.resize(whole("gpu", sim::number_or_fault("gpu", gpus, 0, kMostUnits, fault), fault));
  if (fault || node.units.empty()) return node;
  const auto model = model_number(trimmed_name(row.cell(columns.model)), row, models);
  if (!model) return tl::unexpected(model.error());
  node.model = *model;
  return node;
}

Status read_nodes(const std::filesystem::path& path, PodTrace& trace) {
  auto table = CsvTable::open(path, "node list");
  if (!table) return tl::unexpected(table.error());
  const auto columns = node_columns(*table);
  if (!columns) return tl::unexpected(columns.error());
  uint64_t units = 0;
  auto status = each_row(*table, [&]() -> Status {
    std::optional<Fault> fault;
    auto node = read_node(*table, *columns, trace.models, fault);
    if (!node) return tl::unexpected(node.error());
    if (fault) {
      skip(*table, {"a node: " + fault->reason, fault->detail}, trace);
      return {};
    }
    if (trace.nodes.size() == kMaxNodes)
      return fail(ErrorCode::kExhausted,
                  fmt::format("node list {}: more than {} nodes", table->place(), kMaxNodes));
    units += node->units.size();
    trace.nodes.push_back(std::move(*node));
    return {};
  });
  if (!status) return status;
  if (units == 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("node list {}: it has no GPUs{}", path.string(),
                            trace.first_skipped.empty() ? "" : "; " + trace.first_skipped));
  return {};
}

struct PodColumns {
  size_t cpu, memory, gpus;
  std::optional<size_t> milli, spec, qos, created, scheduled, deleted;
};

Result<PodColumns> pod_columns(const CsvTable& table) {
  if (!table.find({"gpu_milli", "qos", "creation_time"}))
    if (auto right = is_list_of(table, "pods", "nodes", {"sn", "model", "gpu_model"}); !right)
      return tl::unexpected(right.error());
  const auto cpu = table.require({"cpu_milli"});
  if (!cpu) return tl::unexpected(cpu.error());
  const auto memory = table.require({"memory_mib"});
  if (!memory) return tl::unexpected(memory.error());
  const auto gpus = table.require({"num_gpu", "gpu"});
  if (!gpus) return tl::unexpected(gpus.error());
  return PodColumns{*cpu,
                    *memory,
                    *gpus,
                    table.find({"gpu_milli"}),
                    table.find({"gpu_spec"}),
                    table.find({"qos"}),
                    table.find({"creation_time"}),
                    table.find({"scheduled_time"}),
                    table.find({"deletion_time"})};
}

// Models that no node has do not count: a pod that names only such fits nowhere.
uint64_t wanted_models(std::string_view spec, const std::vector<std::string>& models) {
  if (trimmed_name(spec).empty()) return kAnyModel;
  uint64_t wanted = 0;
  for (;;) {
    const auto name = spec.substr(0, spec.find('|'));
    const auto known = std::find(models.begin(), models.end(), trimmed_name(name));
    if (known != models.end()) wanted |= uint64_t{1} << (known - models.begin());
    if (name.size() == spec.size()) return wanted;
    spec.remove_prefix(name.size() + 1);
  }
}

void read_times(const CsvTable& row, const PodColumns& columns, Pod& pod) {
  const auto seconds = [&](std::optional<size_t> column) {
    return parse_number(row.cell(column)).value_or(NAN);
  };
  const double created = seconds(columns.created);
  if (std::isfinite(created)) pod.created_s = std::clamp(created, 0.0, 1e10);
  const double run = seconds(columns.deleted) - seconds(columns.scheduled);
  if (std::isfinite(run)) pod.run_s = std::clamp(run, 0.0, sim::kMaxDurationSeconds);
}

Pod read_pod(const CsvTable& row, const PodColumns& columns, const std::vector<std::string>& models,
             std::optional<Fault>& fault) {
  Pod pod;
  Request& request = pod.request;
  request.cpu_milli = static_cast<uint32_t>(
      sim::number_or_fault("cpu_milli", row.cell(columns.cpu), 0, kMaxCpuMilli, fault));
  request.memory_bytes =
      mib(sim::number_or_fault("memory_mib", row.cell(columns.memory), 0, kMaxMemoryMib, fault));
  request.units =
      whole("num_gpu",
            sim::number_or_fault("num_gpu", row.cell(columns.gpus), 0, kMostUnits, fault), fault);
  request.share.milli = request.units > 0 ? kWholeUnit : 0;
  const auto milli = row.cell(columns.milli);
  if (request.units == 1 && !milli.empty())
    request.share.milli =
        whole("gpu_milli", sim::number_or_fault("gpu_milli", milli, 0, kWholeUnit, fault), fault);
  if (request.units == 1 && request.share.milli == 0) request.units = 0;  // asks for nothing of it
  if (request.units > 0) request.models = wanted_models(row.cell(columns.spec), models);
  pod.job_class =
      row.cell(columns.qos) == "BE" ? JobClass::kBestEffort : JobClass::kLatencySensitive;
  read_times(row, columns, pod);
  return pod;
}

}  // namespace

Result<PodTrace> read_pods(const std::filesystem::path& pods, const std::filesystem::path& nodes) {
  PodTrace trace;
  if (auto status = read_nodes(nodes, trace); !status) return tl::unexpected(status.error());
  auto table = CsvTable::open(pods, "pod list");
  if (!table) return tl::unexpected(table.error());
  const auto columns = pod_columns(*table);
  if (!columns) return tl::unexpected(columns.error());
  auto status = each_row(*table, [&]() -> Status {
    std::optional<Fault> fault;
    auto pod = read_pod(*table, *columns, trace.models, fault);
    if (fault) {
      skip(*table, *fault, trace);
      return {};
    }
    if (trace.pods.size() == kMaxPods)
      return fail(ErrorCode::kExhausted,
                  fmt::format("pod list {}: more than {} pods", table->place(), kMaxPods));
    trace.pods.push_back(std::move(pod));
    return {};
  });
  if (!status) return tl::unexpected(status.error());
  const bool any = std::any_of(trace.pods.begin(), trace.pods.end(),
                               [](const Pod& pod) { return pod.request.units > 0; });
  if (!any)
    return fail(ErrorCode::kInvalid,
                fmt::format("pod list {}: no pod of it asks for a GPU{}", pods.string(),
                            trace.first_skipped.empty() ? "" : "; " + trace.first_skipped));
  return trace;
}

}  // namespace tierpilot::sharing
