#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/table/cell.h"
#include "base/table/csv_table.h"
#include "policies/sim/trace/readers.h"
#include "policies/sim/trace/trace_builder.h"
#include "policies/sim/view/gpus.h"

namespace tierpilot::sim {
namespace {

constexpr double kMaxCpuMilli = 4e9;
constexpr double kMaxMemoryMib = 1e9;
constexpr size_t kMaxNodes = 1'000'000;

uint64_t mib(double count) {
  return static_cast<uint64_t>(count * (1 << 20));
}

struct NodeColumns {
  size_t name, cpu, memory, gpus;
  std::optional<size_t> model;
};

// Asks for columns and keeps the first error.
class Needed {
 public:
  explicit Needed(const CsvTable& table) : table_(table) {}
  size_t operator()(std::initializer_list<std::string_view> names) {
    auto column = table_.require(names);
    if (!column && !error) error = column.error();
    return column.value_or(0);
  }
  std::optional<Error> error;

 private:
  const CsvTable& table_;
};

// A node that cannot be read is an error: without it the cluster would be another one.
Result<OpenbNode> read_node(const CsvTable& row, const NodeColumns& columns) {
  std::optional<Fault> fault;
  OpenbNode node;
  node.name = row.cell(columns.name);
  node.cpu_milli = static_cast<uint32_t>(
      number_or_fault("cpu_milli", row.cell(columns.cpu), 0, kMaxCpuMilli, fault));
  node.memory_bytes =
      mib(number_or_fault("memory_mib", row.cell(columns.memory), 0, kMaxMemoryMib, fault));
  node.gpus =
      static_cast<uint32_t>(number_or_fault("gpu", row.cell(columns.gpus), 0, Gpus::kMost, fault));
  if (node.gpus > 0) node.gpu_model = row.cell(columns.model);
  if (fault)
    return fail(ErrorCode::kInvalid, fmt::format("trace {}: {}", row.place(), fault->detail));
  return node;
}

Result<std::vector<OpenbNode>> read_nodes(const std::filesystem::path& path) {
  auto table = CsvTable::open(path, "trace");
  if (!table) return tl::unexpected(table.error());
  Needed need(*table);
  const NodeColumns columns{need({"sn", "name"}), need({"cpu_milli"}), need({"memory_mib"}),
                            need({"gpu", "num_gpu"}), table->find({"model"})};
  if (need.error) return tl::unexpected(*need.error);
  std::vector<OpenbNode> nodes;
  for (;;) {
    const auto more = table->next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    auto node = read_node(*table, columns);
    if (!node) return tl::unexpected(node.error());
    if (nodes.size() >= kMaxNodes)
      return fail(ErrorCode::kExhausted,
                  fmt::format("trace {}: more than {} nodes", table->place(), kMaxNodes));
    nodes.push_back(std::move(*node));
  }
  if (nodes.empty())
    return fail(ErrorCode::kInvalid, fmt::format("trace {}: it has no nodes", path.string()));
  return nodes;
}

struct PodColumns {
  size_t cpu, memory, gpus, created, deleted, scheduled;
  std::optional<size_t> gpu_milli, gpu_spec, qos;
};

class PodReader {
 public:
  PodReader(const PodColumns& columns, const std::vector<OpenbNode>& nodes, TraceBuilder& builder)
      : columns_(columns), builder_(builder) {
    for (const auto& node : nodes)
      if (!node.gpu_model.empty()) models_.insert(node.gpu_model);
  }

  Status add(const CsvTable& row) {
    std::optional<Fault> fault;
    if (row.cell(columns_.scheduled).empty()) {
      builder_.skip("never scheduled", row.place(),
                    "column scheduled_time: it was never scheduled");
      return {};
    }
    Task task;
    const double cpu_milli =
        number_or_fault("cpu_milli", row.cell(columns_.cpu), 0, kMaxCpuMilli, fault);
    task.units = static_cast<uint32_t>(std::max(std::ceil(cpu_milli / 1000), 1.0));
    task.memory_bytes =
        mib(number_or_fault("memory_mib", row.cell(columns_.memory), 0, kMaxMemoryMib, fault));
    task.gpu_milli = gpu_milli(row, fault);
    task.arrival_ns = time_or_fault("creation_time", row.cell(columns_.created), fault);
    const int64_t start_ns = time_or_fault("scheduled_time", row.cell(columns_.scheduled), fault);
    const int64_t end_ns = time_or_fault("deletion_time", row.cell(columns_.deleted), fault);
    const double duration_s = static_cast<double>(end_ns - start_ns) / 1e9;
    if (!fault && (duration_s <= 0 || duration_s > kMaxDurationSeconds))
      fault = Fault{"no run time",
                    fmt::format("from scheduled_time to deletion_time are {} s", duration_s)};
    if (fault) {
      builder_.skip(fault->reason, row.place(), fault->detail);
      return {};
    }
    task.operations = duration_s * kReferenceOperationsPerSecond;
    const auto qos = row.cell(columns_.qos);
    task.user = builder_.user(qos.empty() ? "unknown" : qos);
    auto type = gpu_type(row.cell(columns_.gpu_spec));
    if (!type) return tl::unexpected(type.error());
    task.gpu_type = *type;
    builder_.add(task);
    return {};
  }

  uint64_t choices() const { return choices_; }

 private:
  uint32_t gpu_milli(const CsvTable& row, std::optional<Fault>& fault) {
    const double gpus = number_or_fault("num_gpu", row.cell(columns_.gpus), 0, kMaxWidth, fault);
    // Of whole ones the share may be left out, or 0.
    if (gpus != 1 || row.cell(columns_.gpu_milli).empty() || row.cell(columns_.gpu_milli) == "0")
      return static_cast<uint32_t>(gpus) * 1000;
    return static_cast<uint32_t>(
        number_or_fault("gpu_milli", row.cell(columns_.gpu_milli), 0, 1000, fault));
  }

  Result<uint16_t> gpu_type(std::string_view spec) {
    if (spec.empty()) return kAnyGpuType;
    std::string_view chosen = spec.substr(0, spec.find('|'));
    if (chosen.size() < spec.size()) ++choices_;
    for (auto rest = spec; !rest.empty();) {
      const auto name = rest.substr(0, rest.find('|'));
      if (models_.contains(name)) {
        chosen = name;
        break;
      }
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    }
    return builder_.gpu_type(chosen);
  }

  const PodColumns& columns_;
  TraceBuilder& builder_;
  std::set<std::string, std::less<>> models_;
  uint64_t choices_ = 0;
};

}  // namespace

Result<OpenbTrace> read_openb(const std::filesystem::path& pods, const std::filesystem::path& nodes,
                              const TraceOptions& options) {
  auto cluster = read_nodes(nodes);
  if (!cluster) return tl::unexpected(cluster.error());
  auto table = CsvTable::open(pods, "trace");
  if (!table) return tl::unexpected(table.error());
  Needed need(*table);
  const PodColumns columns{
      need({"cpu_milli"}),        need({"memory_mib"}),      need({"num_gpu", "gpu"}),
      need({"creation_time"}),    need({"deletion_time"}),   need({"scheduled_time"}),
      table->find({"gpu_milli"}), table->find({"gpu_spec"}), table->find({"qos"})};
  if (need.error) return tl::unexpected(*need.error);
  TraceBuilder builder("openb", pods, options);
  PodReader reader(columns, *cluster, builder);
  for (;;) {
    const auto more = table->next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (auto added = reader.add(*table); !added) return tl::unexpected(added.error());
  }
  builder.derived("users: the pods' qos");
  if (reader.choices())
    builder.derived(
        fmt::format("GPU type of {} pods: the first of those they may have", reader.choices()));
  auto trace = std::move(builder).finish();
  if (!trace) return tl::unexpected(trace.error());
  return OpenbTrace{std::move(*trace), std::move(*cluster)};
}

}  // namespace tierpilot::sim
