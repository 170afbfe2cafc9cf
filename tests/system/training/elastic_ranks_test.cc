// Ranks of an elastic gang on real daemons: the same cores each, fewer when another task needs
// those of one of them; their loss is the mean over them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

// Each rank has a loss of its own, rank 1 three times the samples. It writes down how many cores it
// was told of.
constexpr const char* kRankJob = R"(
import os, sys, time
import tierpilot
job = tierpilot.job()
step, told = 0, None
while not os.path.exists(sys.argv[1]):
    step += 1
    until = time.process_time() + 0.005
    while time.process_time() < until:
        pass
    job.report(iteration=step, loss=job.rank + 100 / (step + 100), samples=step * (1 + 2 * job.rank))
    if job.cores() != told:
        told = job.cores()
        print(f"cores {told:.3f}", flush=True)
)";

class ElasticRanks : public testing::Test {
 protected:
  static constexpr int kUnits = 4;

  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 2, .units = kUnits, .sharing_period_s = 1});
    gate_ = cluster_->folder() / "gate";
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  double units(uint64_t id) {
    const auto share = shown(id)["share"];
    return share.is_object() ? share["units"].get<double>() : 0;
  }

  std::unique_ptr<Cluster> cluster_;
  std::filesystem::path gate_;
};

TEST_F(ElasticRanks, HaveTheSameCoresEachAndGiveThemBack) {
  const auto gang = submit_python(cluster_->address(),
                                  {"--ranks", "2", "--ranks-per-node", "1:1", "--elastic", "1:4"},
                                  kRankJob, {gate_.string()});
  ASSERT_TRUE(eventually([&] { return shown(gang)["state"] == "running"; }))
      << shown(gang).dump(2) << cluster_->logs();
  const Json ranks = shown(gang)["ranks"];
  ASSERT_EQ(ranks.size(), 2u);
  const uint64_t first = ranks[0]["id"], second = ranks[1]["id"];
  ASSERT_TRUE(eventually([&] { return units(first) > 3.9 && units(second) > 3.9; }))
      << shown(first).dump(2) << shown(second).dump(2);
  // Weighted by samples: a quarter of rank 0's, three of rank 1's, which is larger by 1.
  ASSERT_TRUE(eventually([&] {
    const auto progress = shown(gang)["progress"];
    if (progress.empty() || !progress.back()["loss"].is_number()) return false;
    const double step = progress.back()["iteration"];
    return std::abs(progress.back()["loss"].get<double>() - 0.75 - 100 / (step + 100)) < 0.1;
  })) << shown(gang)["progress"].dump(2);

  const auto rigid = submitted_id(tierctl_at(
      cluster_->address(),
      {"-j", "task", "submit", "--units", "3", "--node", ranks[1]["node"], "--", "/bin/sh", "-c",
       fmt::format("until [ -e {} ]; do sleep 0.1; done", gate_.string())}));
  ASSERT_TRUE(eventually([&] { return shown(rigid)["state"] == "running"; }));
  ASSERT_TRUE(eventually([&] { return units(second) < 1.01 && units(first) < 1.01; }))
      << shown(first).dump(2) << shown(second).dump(2);
  // A coordinator that begins anew goes on with the same try, and knows what each has.
  cluster_->coordinator().kill_now();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] {
    const auto share = shown(second)["share"];
    return share.is_object() && share["units"].get<double>() < 1.01 &&
           share["reason"].get<std::string>().find("just started") == std::string::npos;
  })) << shown(second)["share"].dump(2);
  EXPECT_EQ(shown(gang)["attempt"], 1);
  const auto table = tierctl_at(cluster_->address(), {"task", "show", std::to_string(gang)});
  EXPECT_NE(table.out.find("Cores, as long as it runs"), std::string::npos) << table.out;
  std::ofstream(gate_) << "open";
  for (const uint64_t id : {gang, rigid}) {
    const auto task = cluster_->client().wait(id);
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2) << cluster_->logs();
  }
  for (const uint64_t rank : {first, second}) {
    const auto log = cluster_->client().log(rank).value_or("");
    EXPECT_GE(std::count(log.begin(), log.end(), '\n'), 2) << log;  // through its channel
  }
}

}  // namespace
}  // namespace tierpilot::test
