#include "policies/sim/trace/trace_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table/cell.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kMaxTasks = 20'000'000;  // 1.3 GB
constexpr uint32_t kWholeGpu = 1000;

uint32_t divide_up(uint32_t value, uint32_t by) {
  return value / by + (value % by != 0);
}

// How many tasks a task becomes.
uint32_t part_count(const Task& task, const TraceOptions& options) {
  const uint32_t gpus = task.gpu_milli / kWholeGpu;
  const uint32_t by_units = options.max_units ? divide_up(task.units, options.max_units) : 1;
  const uint32_t by_gpus = options.max_gpus && gpus ? divide_up(gpus, options.max_gpus) : 1;
  return std::max({by_units, by_gpus, 1u});
}

// The share of part `i` of `parts`: as equal as whole numbers can be.
uint64_t share(uint64_t whole, uint32_t parts, uint32_t i) {
  return whole / parts + (i < whole % parts);
}

void take_share(Task& task, uint32_t parts, uint32_t i) {
  task.units = static_cast<uint32_t>(std::max<uint64_t>(share(task.units, parts, i), 1));
  task.memory_bytes = share(task.memory_bytes, parts, i);
  const uint32_t gpu_unit = task.gpu_milli > kWholeGpu ? kWholeGpu : 1;
  task.gpu_milli = static_cast<uint32_t>(share(task.gpu_milli / gpu_unit, parts, i)) * gpu_unit;
}

}  // namespace

TraceBuilder::TraceBuilder(std::string format, const std::filesystem::path& path,
                           const TraceOptions& options)
    : options_(options), path_(path.string()) {
  summary_.format = std::move(format);
  workload_.name = path.filename().string();
}

uint32_t TraceBuilder::user(std::string_view name) {
  const auto [at, added] =
      users_.try_emplace(std::string(name), static_cast<uint32_t>(workload_.users.size()));
  if (added) workload_.users.emplace_back(name);
  return at->second;
}

Result<uint16_t> TraceBuilder::gpu_type(std::string_view name) {
  const auto [at, added] =
      gpu_types_.try_emplace(std::string(name), static_cast<uint16_t>(workload_.gpu_types.size()));
  if (added && workload_.gpu_types.size() >= kAnyGpuType)
    return fail(ErrorCode::kInvalid,
                fmt::format("trace {}: more than {} types of GPU", path_, kAnyGpuType));
  if (added) workload_.gpu_types.emplace_back(name);
  return at->second;
}

uint32_t TraceBuilder::add_dataset(uint64_t bytes) {
  workload_.datasets.push_back({bytes});
  return static_cast<uint32_t>(workload_.datasets.size() - 1);
}

void TraceBuilder::add(Task task, const std::vector<DatasetUse>& uses) {
  ++summary_.rows;
  if (workload_.tasks.size() > kMaxTasks)
    return;  // `finish` refuses it; an endless file ends there
  task.first_use = static_cast<uint32_t>(workload_.uses.size());
  task.use_count = static_cast<uint32_t>(uses.size());
  workload_.uses.insert(workload_.uses.end(), uses.begin(), uses.end());
  workload_.tasks.push_back(task);
}

void TraceBuilder::add_gang(Task task, uint32_t ranks, const std::vector<DatasetUse>& uses) {
  task.gang = static_cast<uint32_t>(workload_.gangs.size());
  workload_.gangs.push_back({0, ranks});
  add(task, uses);
}

void TraceBuilder::skip(std::string_view reason, std::string_view place, std::string_view detail) {
  ++summary_.rows;
  ++summary_.skipped[std::string(reason)];
  if (summary_.first_skipped.empty()) summary_.first_skipped = fmt::format("{}: {}", place, detail);
}

void TraceBuilder::cut() {
  auto& tasks = workload_.tasks;
  std::ranges::stable_sort(tasks, {}, &Task::arrival_ns);
  const int64_t first_ns = tasks.front().arrival_ns;
  summary_.span_ns = tasks.back().arrival_ns - first_ns;
  const auto outside = [&](const Task& task) {
    const int64_t at_ns = task.arrival_ns - first_ns;
    return at_ns < options_.from_ns || at_ns >= options_.until_ns;
  };
  std::erase_if(tasks, outside);
  if (tasks.size() > options_.max_tasks) tasks.resize(options_.max_tasks);
  if (tasks.empty()) return;
  const int64_t start_ns = tasks.front().arrival_ns;
  for (auto& task : tasks)
    task.arrival_ns = std::llround(
        std::min(static_cast<double>(task.arrival_ns - start_ns) / options_.rate, kLastArrivalNs));
}

// One after the other; of a gang all alike.
void TraceBuilder::add_parts(const Task& task, uint32_t parts, bool is_gang) {
  for (uint32_t i = 0; i < parts; ++i) {
    Task part = task;
    if (i == 1) {  // the others read only
      part.first_use = static_cast<uint32_t>(workload_.uses.size());
      for (uint32_t u = 0; u < task.use_count; ++u)
        workload_.uses.push_back({workload_.uses[task.first_use + u].dataset, false});
    } else if (i > 1) {
      part.first_use = workload_.tasks.back().first_use;
    }
    if (!is_gang) take_share(part, parts, i);
    workload_.tasks.push_back(part);
  }
}

Status TraceBuilder::split() {
  std::vector<Task> whole;
  whole.swap(workload_.tasks);
  std::vector<Gang> read;  // gangs whose ranks are not tasks yet
  read.swap(workload_.gangs);
  uint64_t wide = 0, made = 0;
  for (Task task : whole) {
    const bool was_gang = task.gang != kNoGang;
    const uint32_t parts = was_gang ? read[task.gang].ranks : part_count(task, options_);
    if (workload_.tasks.size() + parts > kMaxTasks)
      return fail(ErrorCode::kExhausted,
                  fmt::format("trace {}: more than {} tasks; take a part of it", path_, kMaxTasks));
    if (parts > 1 && !was_gang) ++wide, made += parts;
    const bool is_gang = parts > 1 && (was_gang || options_.wide_are_gangs);
    if (is_gang && !was_gang) take_share(task, parts, 0);  // ranks need the same: the largest
    task.gang = is_gang ? static_cast<uint32_t>(workload_.gangs.size()) : kNoGang;
    if (is_gang) workload_.gangs.push_back({static_cast<uint32_t>(workload_.tasks.size()), parts});
    add_parts(task, parts, is_gang);
  }
  if (wide)
    derived(fmt::format("{} tasks wider than a node are {} {}", wide, made,
                        options_.wide_are_gangs ? "ranks of gangs" : "tasks that arrive together"));
  return {};
}

Result<Trace> TraceBuilder::finish() && {
  if (options_.rate <= 0 || !std::isfinite(options_.rate))
    return fail(ErrorCode::kInvalid,
                fmt::format("trace {}: rate {}: it must be above 0", path_, options_.rate));
  if (workload_.tasks.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("trace {}: none of its {} rows is a task{}{}", path_, summary_.rows,
                            summary_.rows ? "; the first: " : "", summary_.first_skipped));
  if (workload_.tasks.size() > kMaxTasks)
    return fail(ErrorCode::kExhausted,
                fmt::format("trace {}: more than {} tasks; take a part of it", path_, kMaxTasks));
  cut();
  if (workload_.tasks.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("trace {}: no task arrives in the part asked for; the trace spans {} s",
                            path_, summary_.span_ns / 1'000'000'000));
  if (options_.datasets && workload_.datasets.empty()) {
    if (auto added = add_datasets(workload_, *options_.datasets); !added)
      return tl::unexpected(added.error());
    derived(fmt::format("datasets and sizes: model with seed {}", options_.datasets->seed));
  }
  if (auto done = split(); !done) return tl::unexpected(done.error());
  summary_.tasks = workload_.tasks.size();
  return Trace{std::move(workload_), std::move(summary_)};
}

double number_or_fault(std::string_view column, std::string_view cell, double min, double max,
                       std::optional<Fault>& fault) {
  const auto value = parse_number(cell);
  if (value && *value >= min && *value <= max) return *value;
  if (fault) return min;
  if (!value)
    fault = Fault{fmt::format("{} is not a number", column),
                  fmt::format("column {}: {} is not a number", column, shown(cell))};
  else
    fault =
        Fault{fmt::format("{} is out of range", column),
              fmt::format("column {}: {} is not within {} and {}", column, shown(cell), min, max)};
  return min;
}

int64_t time_or_fault(std::string_view column, std::string_view cell, std::optional<Fault>& fault) {
  const auto time_ns = parse_time_ns(cell);
  if (!time_ns && !fault)
    fault = Fault{fmt::format("{} is not a time", column),
                  fmt::format("column {}: {} is neither seconds nor a time as in "
                              "'2017-09-04 10:30:41'",
                              column, shown(cell))};
  return time_ns.value_or(0);
}

}  // namespace tierpilot::sim
