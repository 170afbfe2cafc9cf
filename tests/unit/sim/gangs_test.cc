// Gangs in simulated clusters: all ranks or none, together, and once more together.
#include "tests/unit/sim/failing_world.h"

namespace tierpilot::sim {
namespace {

// Ranks of one unit that run `run_ms` each on a plain node.
struct GangBuilder {
  Workload workload;

  void add_task(int64_t arrival_ms, int64_t run_ms, std::vector<DatasetUse> uses = {}) {
    Task task;
    task.arrival_ns = arrival_ms * kMs;
    task.operations = static_cast<double>(run_ms) * 1e6;
    task.first_use = static_cast<uint32_t>(workload.uses.size());
    task.use_count = static_cast<uint32_t>(uses.size());
    workload.uses.insert(workload.uses.end(), uses.begin(), uses.end());
    workload.tasks.push_back(task);
  }
  void add_gang(int64_t arrival_ms, int64_t run_ms, uint32_t ranks,
                const std::vector<DatasetUse>& uses = {}) {
    const auto gang = static_cast<uint32_t>(workload.gangs.size());
    workload.gangs.push_back({static_cast<uint32_t>(workload.tasks.size()), ranks});
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      add_task(arrival_ms, run_ms, uses);
      workload.tasks.back().gang = gang;
    }
  }
};

double makespan_s(const ClusterSpec& cluster, const Workload& workload) {
  return run(cluster, workload).result.makespan_s;
}

TEST(Gangs, CountOnceAndRunSideBySide) {
  GangBuilder jobs;
  jobs.add_gang(0, 5000, 4);
  const auto [result, log] = run(plain_cluster(2, 2), jobs.workload);
  EXPECT_EQ(result.tasks, 1u);
  EXPECT_EQ(result.succeeded, 1u);
  EXPECT_NEAR(result.makespan_s, 5, 1e-6);
  EXPECT_NEAR(result.utilisation, 1, 1e-6);
  EXPECT_TRUE(log.decisions.empty()) << "no policy of tasks was asked";
}

TEST(Gangs, AllRanksWaitForRoomForAll) {
  GangBuilder jobs;
  jobs.add_task(0, 10'000);
  jobs.add_gang(1, 5000, 4);
  EXPECT_NEAR(makespan_s(plain_cluster(2, 2), jobs.workload), 15, 1e-3);
}

TEST(Gangs, OthersOvertakeOneThatWaitsUntilItHasWaitedLong) {
  GangBuilder jobs;
  jobs.add_task(0, 10'000);
  jobs.add_gang(1, 5000, 4);
  for (int i = 0; i < 18; ++i) jobs.add_task(2 + 1000 * i, 1000);
  auto cluster = plain_cluster(2, 2);
  cluster.coordinator.backlog_units = 0;
  cluster.coordinator.service_order = ServiceOrder::kArrival;
  cluster.coordinator.gang_patience_s = 1000;
  const double overtaken = run(cluster, jobs.workload).result.response_s.p50;
  EXPECT_NEAR(overtaken, 1, 0.01) << "short ones go past it";
  cluster.coordinator.gang_patience_s = 0;
  EXPECT_GT(run(cluster, jobs.workload).result.response_s.p50, 3) << "they wait with it";
}

TEST(Gangs, AreAsFastAsTheSlowestNode) {
  auto cluster = plain_cluster(1);
  cluster.groups.push_back(plain_nodes(1));
  cluster.groups[1].operations_per_s = 0.5e9;
  GangBuilder jobs;
  jobs.add_gang(0, 10'000, 2);
  EXPECT_NEAR(makespan_s(cluster, jobs.workload), 20, 1e-6);
}

TEST(Gangs, BeginWhenTheLastRankHasItsData) {
  GangBuilder jobs;
  jobs.workload.datasets.push_back({50 * kMB});
  jobs.add_gang(0, 1000, 2, {{0, false}});
  // Its home promotes it at 1 GB/s, then the other node has it over a link as fast.
  const double alone_s = 0.05;
  const double seconds = makespan_s(plain_cluster(2), jobs.workload);
  EXPECT_GE(seconds, 1 + alone_s);
  EXPECT_LE(seconds, 1 + 3 * alone_s);
}

TEST(Gangs, LargerThanAllNodesAreRejectedOnce) {
  GangBuilder jobs;
  jobs.add_gang(0, 1000, 5);
  jobs.add_task(1, 1000);
  const auto result = run(plain_cluster(2, 2), jobs.workload).result;
  EXPECT_EQ(result.rejected, 1u);
  EXPECT_EQ(result.succeeded, 1u);
}

// Of 60 MB, where a node's fast memory has 100: what the first writes and what the others read of
// it are two versions.
GangBuilder a_gang_that_writes(uint32_t ranks) {
  GangBuilder jobs;
  jobs.workload.datasets.push_back({60 * kMB});
  jobs.add_gang(0, 1000, ranks, {{0, false}});
  jobs.workload.uses.front().write = true;
  return jobs;
}

TEST(Gangs, NoRankWaitsForRoomThatAnotherKeeps) {
  const auto jobs = a_gang_that_writes(2);
  EXPECT_EQ(run(plain_cluster(2, 2), jobs.workload).result.succeeded, 1u);
  EXPECT_EQ(run(plain_cluster(2), jobs.workload).result.succeeded, 1u);
  const auto crowded = run(plain_cluster(1, 2), jobs.workload).result;
  EXPECT_EQ(crowded.rejected, 1u) << "no node ever holds both versions";
}

TEST(Gangs, LoseAllRanksWithOneNodeAndKeepTheirCheckpoint) {
  auto cluster = plain_cluster(4, 1);
  cluster.groups[0].node_failures = {.mean_between_s = 300, .mean_repair_s = 1};
  cluster.coordinator.lease_s = 1;
  cluster.coordinator.max_attempts = 100;
  GangBuilder jobs;
  for (int i = 0; i < 20; ++i) jobs.add_gang(i, 60'000, 4);
  const auto anew = run(cluster, jobs.workload).result;
  EXPECT_EQ(anew.succeeded, 20u);
  EXPECT_GT(anew.restarts, 5u);
  cluster.checkpoints.interval_s = 5;
  const auto kept = run(cluster, jobs.workload).result;
  EXPECT_EQ(kept.succeeded, 20u);
  EXPECT_LT(kept.makespan_s, 0.8 * anew.makespan_s);
  EXPECT_GE(kept.makespan_s, 20 * 60.0);
}

TEST(Gangs, EveryJobEndsOnceAmongFailuresTasksAndWriters) {
  for (const double shared_cores : {0.0, 3.0}) {
    auto cluster = failing_cluster();
    cluster.groups[0].shared_cores = shared_cores;
    const auto workload = mixed(1500, cluster, 0.3);
    EXPECT_GT(workload.gangs.size(), 200u);
    EXPECT_LT(workload.jobs(), workload.tasks.size());
    const auto policy = make_locality_load_policy(1);
    const auto [result, log] = run(cluster, workload, *policy);
    EXPECT_EQ(result.tasks, 1500u);
    EXPECT_EQ(result.succeeded, 1500u) << result.failed << " failed, " << result.rejected
                                       << " rejected, " << result.unfinished << " unfinished";
    EXPECT_GT(result.restarts, 0u);
    EXPECT_EQ(log.decisions.size(), log.services.size() + log.abandons.size()) << "of tasks alone";
  }
}

TEST(Gangs, EqualSeedsGiveEqualRuns) {
  const auto cluster = failing_cluster();
  const auto workload = mixed(1500, cluster, 0.3);
  const auto policy = make_locality_load_policy(1), again = make_locality_load_policy(1);
  const auto a = run(cluster, workload, *policy).result;
  const auto b = run(cluster, workload, *again).result;
  EXPECT_EQ(a.makespan_s, b.makespan_s);
  EXPECT_EQ(a.events, b.events);
}

// Takes the places from the end.
class LastPlaces final : public gang::Placer {
 public:
  std::vector<uint32_t> place(const gang::PlacementState& state, const gang::Job& job) override {
    std::vector<uint32_t> units;
    for (auto unit = static_cast<uint32_t>(state.free.size());
         unit-- > 0 && units.size() < job.units;)
      if (state.free[unit]) units.push_back(unit);
    ++asked;
    return units;
  }
  int asked = 0;
};

TEST(Gangs, GoWhereTheGivenPolicyWantsThem) {
  auto cluster = plain_cluster(1, 2);
  cluster.groups.push_back(plain_nodes(1, 2));
  cluster.groups[1].operations_per_s = 0.5e9;
  GangBuilder jobs;
  jobs.add_gang(0, 10'000, 2);
  LastPlaces placer;
  ScriptedPolicy tasks({0});
  const auto result = simulate(cluster, jobs.workload, tasks, {.gang_placer = &placer});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(placer.asked, 1);
  EXPECT_NEAR(result->makespan_s, 20, 1e-6) << "the slow node is last";
}

}  // namespace
}  // namespace tierpilot::sim
