// A training job of one rank on a real cluster begins again with three, from its checkpoint, and
// the rank that follows knows how many there are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

// Twice as many ranks take half as long for an iteration. Ends when the gate opens.
constexpr const char* kGrowingJob = R"(
import os, sys, time
import tierpilot
job = tierpilot.job()
world = int(os.environ["WORLD_SIZE"])
step = int(open(job.restored).read()) if job.restored else 0
print("began at", step, "of", world, flush=True)
while not os.path.exists(sys.argv[1]):
    step += 1
    time.sleep(0.1 / world)
    if job.rank != 0:
        continue
    job.report(iteration=step, loss=1 + 2 ** (-step / 600))
    if job.should_checkpoint():
        with open("state", "w") as state:
            state.write(str(step))
        job.checkpoint("state", iteration=step)
)";

class GangGrowth : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 3,
                       .units = 1,
                       .sharing_period_s = 1,
                       .elastic_horizon_s = 60,
                       .coordinator_more = "[gang]\nrestart_s = 2\ncheckpoint_s = 1\n"});
    gate_ = cluster_->folder() / "gate";
  }
  uint64_t submit(const std::vector<std::string>& options) {
    return submit_python(cluster_->address(), options, kGrowingJob, {gate_.string()});
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }

  std::unique_ptr<Cluster> cluster_;
  std::filesystem::path gate_;
};

TEST_F(GangGrowth, BeginsAgainWithMoreRanksFromItsCheckpoint) {
  const auto id = submit({"--ranks", "1", "--max-ranks", "3"});
  ASSERT_TRUE(eventually([&] { return shown(id)["state"] == "running"; })) << shown(id).dump(2);
  EXPECT_EQ(shown(id)["ranks"].size(), 1u);
  ASSERT_TRUE(eventually(
      [&] {
        const auto task = shown(id);
        return task["state"] == "running" && task["ranks"].size() == 3;
      },
      2 * kPatience))
      << shown(id).dump(2) << cluster_->logs();
  EXPECT_EQ(shown(id)["restarts"], 0) << "it did not fail";
  const Json ranks = shown(id)["ranks"];
  for (const auto& rank : ranks) {
    int step = 0, world = 0;
    ASSERT_TRUE(eventually([&] {
      const auto log = cluster_->client().log(rank["id"]).value_or("");
      return std::sscanf(log.c_str(), "began at %d of %d", &step, &world) == 2 && world == 3;
    })) << rank.dump(2);
    EXPECT_GT(step, 0) << "from a checkpoint";
  }
  const auto explained = tierctl_at(cluster_->address(), {"task", "explain", std::to_string(id)});
  EXPECT_NE(explained.out.find("3 ranks: "), std::string::npos) << explained.out;
  const auto table = tierctl_at(cluster_->address(), {"task", "show", std::to_string(id)});
  EXPECT_NE(table.out.find("Why not more now"), std::string::npos) << table.out;
  std::ofstream(gate_) << "open";
  const auto task = cluster_->client().wait(id);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  for (const auto& rank : (*task)["ranks"]) EXPECT_EQ(rank["state"], "succeeded");
}

TEST_F(GangGrowth, StaysAsItIsWhereOthersHaveTheRest) {
  std::vector<uint64_t> others;
  for (int i = 0; i < 2; ++i)
    others.push_back(submitted_id(
        tierctl_at(cluster_->address(),
                   {"-j", "task", "submit", "--", "/bin/sh", "-c",
                    fmt::format("until [ -e {} ]; do sleep 0.1; done", gate_.string())})));
  const auto id = submit({"--ranks", "1", "--max-ranks", "3"});
  ASSERT_TRUE(eventually([&] { return shown(id)["state"] == "running"; })) << shown(id).dump(2);
  ASSERT_TRUE(eventually([&] {
    return shown(id).value("width", "").find("would not pay") != std::string::npos;
  })) << shown(id).dump(2);
  EXPECT_EQ(shown(id)["attempt"], 1);
  std::ofstream(gate_) << "open";
  others.push_back(id);
  for (const uint64_t task : others) EXPECT_TRUE(cluster_->client().wait(task));
}

}  // namespace
}  // namespace tierpilot::test
