#include <cmath>

#include "base/table/cell.h"
#include "base/table/csv_table.h"
#include "policies/sim/trace/readers.h"
#include "policies/sim/trace/trace_builder.h"

namespace tierpilot::sim {
namespace {

struct Columns {
  size_t submitted = 0;
  size_t gpus = 0;
  std::optional<size_t> duration, gpu_time, cpus, user;
};

Result<Columns> find_columns(const CsvTable& table) {
  Columns columns;
  const auto submitted = table.require({"timestamp", "submit_time", "submitted_time"});
  if (!submitted) return tl::unexpected(submitted.error());
  const auto gpus = table.require({"num_gpus", "gpu_num", "num_gpu", "gpus"});
  if (!gpus) return tl::unexpected(gpus.error());
  columns.submitted = *submitted;
  columns.gpus = *gpus;
  columns.gpu_time = table.find({"gpu_time"});
  columns.duration = table.find({"duration", "run_time"});
  if (!columns.duration && !columns.gpu_time)
    if (const auto needed = table.require({"duration"}); !needed)
      return tl::unexpected(needed.error());
  columns.cpus = table.find({"num_cpus", "cpu_num"});
  columns.user = table.find({"cluster", "vc", "virtual_cluster", "user"});
  return columns;
}

// A share of one GPU, or whole ones.
uint32_t gpu_milli(double gpus) {
  return static_cast<uint32_t>(1000 * (gpus < 1 ? gpus : std::ceil(gpus)));
}

double duration_of(const CsvTable& row, const Columns& columns, double gpus,
                   std::optional<Fault>& fault) {
  const auto cell = row.cell(columns.duration);
  if (!cell.empty() || !columns.gpu_time || gpus == 0)
    return number_or_fault("duration", cell, 0, kMaxDurationSeconds, fault);
  return number_or_fault("gpu_time", row.cell(columns.gpu_time), 0, kMaxDurationSeconds * gpus,
                         fault) /
         gpus;
}

void add_row(const CsvTable& row, const Columns& columns, const TraceOptions& options,
             TraceBuilder& builder) {
  std::optional<Fault> fault;
  Task task;
  task.arrival_ns = time_or_fault("timestamp", row.cell(columns.submitted), fault);
  const double gpus = number_or_fault("num_gpus", row.cell(columns.gpus), 0, kMaxWidth, fault);
  const double duration_s = duration_of(row, columns, gpus, fault);
  const double cpus =
      row.cell(columns.cpus).empty()
          ? options.units_per_gpu * std::ceil(gpus)
          : number_or_fault("num_cpus", row.cell(columns.cpus), 0, kMaxWidth, fault);
  if (!fault && duration_s == 0) fault = Fault{"it ran for 0 s", "column duration: it ran for 0 s"};
  if (fault) return builder.skip(fault->reason, row.place(), fault->detail);
  task.operations = duration_s * kReferenceOperationsPerSecond;
  task.gpu_milli = gpu_milli(gpus);
  task.units = static_cast<uint32_t>(std::max(cpus, 1.0));
  task.user = builder.user(columns.user ? row.cell(columns.user) : "all");
  builder.add(task);
}

}  // namespace

Result<Trace> read_philly(const std::filesystem::path& path, const TraceOptions& options) {
  auto table = CsvTable::open(path, "trace");
  if (!table) return tl::unexpected(table.error());
  const auto columns = find_columns(*table);
  if (!columns) return tl::unexpected(columns.error());
  TraceBuilder builder("philly", path, options);
  for (;;) {
    const auto more = table->next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    add_row(*table, *columns, options, builder);
  }
  if (!columns->cpus)
    builder.derived("units: " + std::to_string(options.units_per_gpu) + " for each GPU");
  return std::move(builder).finish();
}

}  // namespace tierpilot::sim
