#include "policies/sim/gang/gang_suite.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include "policies/sim/trace/readers.h"

namespace tierpilot::gang {
namespace {

constexpr double kPublishedPerH =
    2e-5;  // "The Llama 3 Herd of Models": 419 in 54 days, 16,384 GPUs
constexpr double kStressPerH = 5e-3;
constexpr double kLoad = 0.85;  // of the cluster, by work that arrives
constexpr double kMaxWorkH = 72;
constexpr double kMinWorkH = 0.1;
constexpr uint32_t kLargeJobs = 16;  // times as many units as usual
constexpr double kEstimateOff = 2;   // run times are told up to so many times too long or short
constexpr double kOperationsPerHour = 3600 * sim::kReferenceOperationsPerSecond;

std::vector<Job> made_up(size_t count, SeededRandom& random) {
  constexpr uint32_t kSizes[] = {1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32, 64};
  std::vector<Job> jobs(count);
  for (auto& job : jobs) {
    job.units = kSizes[random.below(std::size(kSizes))];
    job.work_h = random.log_uniform(0.5, 48);
    job.user = static_cast<uint32_t>(random.below(8));
  }
  return jobs;
}

// So many jobs in a row from a place in the trace.
std::vector<Job> drawn(const std::vector<Job>& trace, size_t count, SeededRandom& random) {
  count = std::min(count, trace.size());
  const size_t from = random.below(trace.size() - count + 1);
  const auto begin = trace.begin() + static_cast<std::ptrdiff_t>(from);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// At the load that all cells have; a trace keeps the rhythm of its arrivals.
void set_arrivals(std::vector<Job>& jobs, uint32_t units, bool from_trace, SeededRandom& random) {
  double unit_h = 0;
  for (const auto& job : jobs) unit_h += job.units * job.work_h;
  const double span_h = unit_h / (units * kLoad);
  const double first_h = jobs.front().arrival_h;
  const double last_h = jobs.back().arrival_h;
  for (auto& job : jobs)
    job.arrival_h = from_trace && last_h > first_h
                        ? (job.arrival_h - first_h) / (last_h - first_h) * span_h
                        : random.unit() * span_h;
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.arrival_h < b.arrival_h; });
}

// Data of some GB to TB on as many nodes as the job needs or twice as many, over links of 0.2 to
// 2.5 GB/s.
void add_data(GangScene& scene, uint64_t of_cluster, uint64_t of_episode) {
  constexpr double kHour = 3600;
  SeededRandom of_links(derived_seed(of_cluster, "gang links"));
  const uint32_t nodes = (scene.units + scene.units_per_node - 1) / scene.units_per_node;
  const double usual = of_links.log_uniform(0.2e9, 2.5e9);
  for (uint32_t node = 0; node < nodes; ++node)
    scene.bytes_per_h.push_back(kHour * usual * of_links.log_uniform(0.7, 1.4));
  SeededRandom random(derived_seed(of_episode, "gang data"));
  for (const auto& job : scene.jobs) {
    JobData data{.bytes = random.log_uniform(10e9, 2e12),
                 .nodes = {},
                 .checkpoint_bytes = random.log_uniform(1e9, 200e9)};
    const uint32_t needed = (job.units + scene.units_per_node - 1) / scene.units_per_node;
    const auto copies = std::min(nodes, needed * (1 + static_cast<uint32_t>(random.below(2))));
    while (data.nodes.size() < copies) {
      const auto node = static_cast<uint32_t>(random.below(nodes));
      if (std::find(data.nodes.begin(), data.nodes.end(), node) == data.nodes.end())
        data.nodes.push_back(node);
    }
    scene.data.push_back(std::move(data));
  }
}

}  // namespace

GangSuite gang_suite(uint32_t max_units) {
  GangSuite suite;
  for (const double per_h : {kStressPerH, kPublishedPerH})
    for (const uint32_t units : {16U, 64U, 256U, 1024U})
      for (const uint32_t per_node : {4U, 8U})
        for (const auto setting : {FailureSetting::kEqual, FailureSetting::kDiffering,
                                   FailureSetting::kClustered, FailureSetting::kDrifting})
          if (units <= max_units) suite.cells.push_back({units, per_node, setting, per_h, false});
  for (const double per_h : {kStressPerH, kPublishedPerH})
    for (const uint32_t units : {16U, 64U, 256U, 1024U})
      for (const auto setting : {FailureSetting::kDiffering, FailureSetting::kClustered})
        if (units <= max_units)
          suite.cells.push_back({units, 8, setting, per_h, false, /*with_data=*/true});
  return suite;
}

Result<std::vector<Job>> trace_jobs(const std::filesystem::path& file, TraceHalf half) {
  const auto trace = sim::read_philly(file, {.datasets = std::nullopt});
  if (!trace) return tl::unexpected(trace.error());
  std::vector<Job> jobs;
  for (const auto& task : trace->workload.tasks)
    if (task.gpu_milli >= 1000)
      jobs.push_back(
          {.arrival_h = static_cast<double>(task.arrival_ns) / 3600e9,
           .units = task.gpu_milli / 1000,
           .work_h = std::clamp(task.operations / kOperationsPerHour, kMinWorkH, kMaxWorkH),
           .network = 0,
           .user = task.user});
  const auto middle = jobs.begin() + static_cast<std::ptrdiff_t>(jobs.size() / 2);
  if (half == TraceHalf::kFirst)
    jobs.erase(middle, jobs.end());
  else
    jobs.erase(jobs.begin(), middle);
  if (jobs.empty())
    return fail(ErrorCode::kInvalid, "'" + file.string() + "' has too few jobs that use GPUs");
  return jobs;
}

std::vector<Job> jobs_of(const GangSuite& suite, const GangCell& cell, uint64_t seed) {
  SeededRandom random(derived_seed(seed, "gang jobs"));
  const uint32_t times = cell.large_jobs ? kLargeJobs : 1;
  const size_t count = 60 + cell.units / 2 / times;
  auto jobs = cell.from_trace ? drawn(suite.trace, count, random) : made_up(count, random);
  for (auto& job : jobs) {
    job.units = std::min(job.units * times, cell.units / 2);
    job.network = static_cast<uint32_t>(random.below(kNetworks.size()));
  }
  SeededRandom of_estimates(derived_seed(seed, "gang estimates"));
  for (auto& job : jobs) job.estimate = of_estimates.log_uniform(1 / kEstimateOff, kEstimateOff);
  set_arrivals(jobs, cell.units, cell.from_trace, random);
  return jobs;
}

GangScene scene_of(const GangSuite& suite, const GangCell& cell, uint64_t seed, uint64_t episode) {
  const uint64_t of_episode = episode == 0 ? seed : derived_seed(seed + episode, "gang episode");
  GangScene scene{.jobs = jobs_of(suite, cell, of_episode),
                  .units = cell.units,
                  .units_per_node = cell.units_per_node,
                  .costs = suite.costs,
                  .failures = {}};
  scene.failures = draw_failures({.setting = cell.setting,
                                  .mean_per_h = cell.mean_per_h,
                                  .units = cell.units,
                                  .units_per_node = cell.units_per_node,
                                  .until_h = 5 * (scene.jobs.back().arrival_h + kMaxWorkH),
                                  .changes_h = scene.jobs.back().arrival_h / 2,
                                  .seed = seed,
                                  .times_seed = of_episode});
  if (cell.with_data) add_data(scene, seed, of_episode);
  return scene;
}

Result<std::vector<GangRun>> run_gangs(const GangSuite& suite, const PlacerMaker& make_policy,
                                       uint32_t threads,
                                       const std::function<void(double)>& progress) {
  const size_t scenes = suite.cells.size() * suite.seeds;
  std::vector<GangRun> runs(scenes * suite.policies.size());
  std::atomic<size_t> next = 0;
  std::mutex shown;
  std::optional<Error> failed;  // under `shown`
  const auto work = [&] {
    for (size_t at = next++; at < scenes; at = next++) {
      const size_t cell = at / suite.seeds;
      const uint64_t seed = suite.first_seed + at % suite.seeds;
      const auto scene = suite.make_scene ? suite.make_scene(suite.cells[cell], seed)
                                          : scene_of(suite, suite.cells[cell], seed);
      for (size_t policy = 0; policy < suite.policies.size(); ++policy) {
        auto placer = make_policy(suite.policies[policy], suite.cells[cell], seed);
        if (!placer) {
          const std::lock_guard lock(shown);
          failed = placer.error();
          return;
        }
        runs[at * suite.policies.size() + policy] = {cell, policy, seed, simulate(scene, **placer)};
      }
      const std::lock_guard lock(shown);
      progress(static_cast<double>(at + 1) / static_cast<double>(scenes));
    }
  };
  std::vector<std::jthread> helpers;
  for (uint32_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  if (failed) return tl::unexpected(*failed);
  return runs;
}

}  // namespace tierpilot::gang
