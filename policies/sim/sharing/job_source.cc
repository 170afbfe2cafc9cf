#include "policies/sim/sharing/job_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "policies/sim/trace/readers.h"

namespace tierpilot::sharing {
namespace {

constexpr const char* kNoGpu = "it asks for no GPU";

Result<JobSource> finished(JobSource source) {
  if (source.jobs.empty()) {
    std::string why;
    for (const auto& [reason, count] : source.skipped)
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", reason, count);
    return fail(ErrorCode::kInvalid, fmt::format("trace '{}': no job of it can share GPUs ({})",
                                                 source.name, why.empty() ? "it is empty" : why));
  }
  std::stable_sort(source.jobs.begin(), source.jobs.end(),
                   [](const auto& a, const auto& b) { return a.arrival_s < b.arrival_s; });
  const double first_s = source.jobs.front().arrival_s;
  for (auto& job : source.jobs) job.arrival_s -= first_s;
  return source;
}

// Empty: it can be simulated.
std::string_view why_not(const Pod& pod, const PodTrace& trace) {
  const auto& request = pod.request;
  if (request.units == 0) return kNoGpu;
  if (pod.run_s <= 0) return "it never ran";
  const auto some = [&](auto will_do) {
    return std::any_of(trace.nodes.begin(), trace.nodes.end(), [&](const Node& node) {
      return !node.units.empty() && (request.models >> node.model & 1) != 0 && will_do(node);
    });
  };
  if (!some([](const Node&) { return true; })) return "no node has a GPU that it names";
  if (!some([&](const Node& node) { return node.units.size() >= request.units; }))
    return "no such node has as many GPUs";
  return {};
}

}  // namespace

Result<JobSource> jobs_of_pods(const PodTrace& trace, std::string name) {
  JobSource source;
  source.name = std::move(name);
  source.models = trace.models;
  source.skipped = trace.skipped;
  source.first_skipped = trace.first_skipped;
  for (const auto& node : trace.nodes)
    source.units.insert(source.units.end(), node.units.size(), node.model);
  for (const auto& pod : trace.pods) {
    if (const auto reason = why_not(pod, trace); !reason.empty()) {
      ++source.skipped[std::string(reason)];
      continue;
    }
    source.jobs.push_back({pod.created_s, pod.run_s, pod.request.units, pod.request.share.milli,
                           pod.job_class, pod.request.models});
  }
  return finished(std::move(source));
}

Result<JobSource> read_timed_jobs(const std::filesystem::path& path, std::string name) {
  const auto trace = sim::read_philly(path, {.datasets = std::nullopt});
  if (!trace) return tl::unexpected(trace.error());
  JobSource source;
  source.name = std::move(name);
  source.skipped = trace->summary.skipped;
  source.first_skipped = trace->summary.first_skipped;
  for (const auto& task : trace->workload.tasks) {
    const uint32_t units = std::max(1U, task.gpu_milli / kWholeUnit);
    if (task.gpu_milli == 0 || units > kMostUnits) {
      ++source.skipped[task.gpu_milli == 0
                           ? kNoGpu
                           : fmt::format("it asks for more than {} GPUs", kMostUnits)];
      continue;
    }
    source.jobs.push_back({static_cast<double>(task.arrival_ns) / 1e9,
                           task.operations / sim::kReferenceOperationsPerSecond, units,
                           std::min(task.gpu_milli, kWholeUnit), std::nullopt, kAnyModel});
  }
  return finished(std::move(source));
}

}  // namespace tierpilot::sharing
