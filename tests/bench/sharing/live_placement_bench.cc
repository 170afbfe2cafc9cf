// How long `share` takes to decide on one job over 10,000 GPUs that live jobs hold shares of: where
// it starts, and whether its promise is made.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {
namespace {

constexpr uint32_t kUnitsOfANode = 8;
constexpr uint64_t kUnitBytes = uint64_t{80} << 30, kJobBytes = uint64_t{4} << 30;

Kept kept(const Sharer&, const Sharer&) {
  return {.ln = -0.05, .variance = 0.03};
}

LiveJob job_on(uint64_t id, uint32_t milli) {
  LiveJob job;
  job.id = id;
  job.sharer = {"job" + std::to_string(id % 50), UnitKind::kGpu, 0.8 * milli};
  job.share = {milli, kJobBytes};
  job.need_milli = milli;
  job.left_s = 100;
  job.left_upper_s = 120;
  job.elapsed_s = 10;
  if (id % 2 == 0) {
    job.job_class = JobClass::kLatencySensitive;
    job.promise_left_s = 400;
  }
  return job;
}

// Units with so many jobs each, which leave `free_milli` of it.
std::vector<LiveNode> cluster(uint32_t units, uint32_t jobs, uint32_t free_milli) {
  std::vector<LiveNode> nodes;
  uint64_t id = 0;
  for (uint32_t unit = 0; unit < units; ++unit) {
    if (unit % kUnitsOfANode == 0) nodes.emplace_back();
    LiveUnit live{"H100", {kWholeUnit, kUnitBytes}, {}};
    for (uint32_t i = 0; i < jobs; ++i)
      live.jobs.push_back(job_on(++id, (kWholeUnit - free_milli) / jobs));
    nodes.back().push_back(std::move(live));
  }
  return nodes;
}

WaitingJob waiting(bool promised) {
  WaitingJob job;
  job.id = UINT64_MAX;
  job.sharer = {"new", UnitKind::kGpu, 400};
  job.predicted["H100"] = {500, kJobBytes, 60, 80};
  if (promised) {
    job.job_class = JobClass::kLatencySensitive;
    job.promise_left_s = 150;
  }
  return job;
}

template <class Decide>
std::string timed(uint32_t runs, Decide decide) {
  std::vector<double> ms;
  for (uint32_t run = 0; run < runs; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    decide();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                     .count());
  }
  std::sort(ms.begin(), ms.end());
  return fmt::format("p50 {:6.2f} ms, most {:6.2f} ms", ms[ms.size() / 2], ms.back());
}

int run(uint32_t units, uint32_t runs) {
  const auto policy = make_share_policy("share", kept).value();
  for (const uint32_t jobs : {1, 2, 4})
    for (const uint32_t free_milli : {0, 500}) {
      const auto nodes = cluster(units, jobs, free_milli);
      fmt::print("{} units, {} jobs on each, {} thousandths of each free\n", units, jobs,
                 free_milli);
      for (const bool promised : {false, true}) {
        const auto job = waiting(promised);
        const bool starts = policy->place(nodes, job).has_value();
        fmt::print("  {:<12} place {} ({})\n", promised ? "promised" : "best effort",
                   timed(runs, [&] { (void)policy->place(nodes, job); }),
                   starts ? "starts" : "waits");
        if (promised)
          fmt::print("  {:<12} admit {}\n", "",
                     timed(runs, [&] { (void)policy->admit(nodes, {}, job); }));
      }
    }
  return 0;
}

}  // namespace
}  // namespace tierpilot::sharing

int main(int argc, char** argv) {
  CLI::App app{"How long `share` takes to decide on one job over live units"};
  uint32_t units = 10'000, runs = 31;
  app.add_option("--units", units)->check(CLI::Range(1, 1'000'000))->capture_default_str();
  app.add_option("--runs", runs)->check(CLI::Range(1, 10'000))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return tierpilot::sharing::run(units, runs);
}
