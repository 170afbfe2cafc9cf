#include "policies/sim/trace/options_reader.h"

#include <cmath>

namespace tierpilot::sim {
namespace {

constexpr double kMaxHours = 1e6;
constexpr int64_t kMaxCount = 1'000'000;

int64_t hours_ns(double hours) {
  return std::llround(hours * 3600e9);
}

DatasetModel read_model(ConfigSection section) {
  DatasetModel model;
  model.seed = static_cast<uint64_t>(
      section.integer("seed", static_cast<int64_t>(model.seed), 0, INT64_MAX));
  model.tasks_per_dataset =
      section.number("tasks_per_dataset", model.tasks_per_dataset, 0.001, 1e12);
  model.shared_datasets = static_cast<uint32_t>(
      section.integer("shared_datasets", model.shared_datasets, 0, kMaxCount));
  model.zipf_slope = section.number("zipf_slope", model.zipf_slope, 0, 10);
  model.repeat = section.number("repeat", model.repeat, 0, 1);
  model.shared = section.number("shared", model.shared, 0, 1);
  model.another = section.number("another", model.another, 0, 0.99);
  model.max_per_task =
      static_cast<uint32_t>(section.integer("max_per_task", model.max_per_task, 1, 64));
  model.write = section.number("write", model.write, 0, 1);
  model.median_bytes =
      static_cast<double>(section.bytes("median", static_cast<uint64_t>(model.median_bytes)));
  model.sigma = section.number("sigma", model.sigma, 0, 10);
  model.min_bytes = section.bytes("min", model.min_bytes);
  model.max_bytes = section.bytes("max", model.max_bytes);
  model.memory_median_bytes = static_cast<double>(
      section.bytes("memory_median", static_cast<uint64_t>(model.memory_median_bytes)));
  model.memory_sigma = section.number("memory_sigma", model.memory_sigma, 0, 10);
  if (model.min_bytes > model.max_bytes) section.complain("min", "it is larger than max");
  return model;
}

}  // namespace

TraceOptions read_trace_options(ConfigReader& reader) {
  TraceOptions options;
  auto trace = reader.section("trace");
  options.from_ns = hours_ns(trace.number("from_hours", 0, 0, kMaxHours));
  if (trace.has("until_hours"))
    options.until_ns = hours_ns(trace.number("until_hours", kMaxHours, 0, kMaxHours));
  if (trace.has("max_tasks"))
    options.max_tasks = static_cast<uint64_t>(trace.integer("max_tasks", 1, 1, INT64_MAX));
  options.rate = trace.number("rate", options.rate, 1e-6, 1e6);
  options.max_units = static_cast<uint32_t>(trace.integer("max_units", 0, 0, kMaxCount));
  options.max_gpus = static_cast<uint32_t>(trace.integer("max_gpus", 0, 0, kMaxCount));
  options.wide_are_gangs = trace.boolean("wide_are_gangs", options.wide_are_gangs);
  options.units_per_gpu =
      static_cast<uint32_t>(trace.integer("units_per_gpu", options.units_per_gpu, 0, 1000));
  const auto model = read_model(reader.section("datasets"));
  options.datasets = trace.boolean("model_datasets", true) ? std::optional(model) : std::nullopt;
  return options;
}

}  // namespace tierpilot::sim
