// Checkpoints on real daemons: a gang that loses a rank, or a whole node, goes on from where it
// was.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

// Counts; rank 0 saves the count every fifth step. Ends when the gate opens.
constexpr const char* kCounter = R"(
import os, sys, time
import tierpilot
job = tierpilot.job()
step = int(open(job.restored).read()) if job.restored else 0
assert not job.restored or step == job.restored_iteration
print("began at", step, flush=True)
while not os.path.exists(sys.argv[1]):
    step += 1
    if job.rank == 0 and step % 5 == 0:
        with open("state", "w") as state:
            state.write(str(step))
        if not job.checkpoint("state", iteration=step):
            print("not saved:", job.checkpoint_error, flush=True)
    job.report(iteration=step)
    time.sleep(0.05)
)";

class Checkpointed : public testing::Test {
 protected:
  // Leases are short where a test waits for one to end.
  void start(int nodes, int64_t lease_ms = 3000) {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = nodes, .units = 2, .lease_ms = lease_ms, .max_attempts = 50});
    gate_ = cluster_->folder() / "gate";
  }
  uint64_t submit(const std::vector<std::string>& options) {
    return submit_python(cluster_->address(), options, kCounter, {gate_.string()});
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  // The newest that has outlived its node if that goes now; -1: none yet.
  int safe_iteration(uint64_t id) {
    const auto task = shown(id);
    for (const auto& checkpoint : task["checkpoints"])
      if (checkpoint["safe"] == true) return checkpoint["iteration"];
    return -1;
  }
  // Nodes that have a checkpoint of the job in the fast tier: both that keep the newest, though
  // this job takes them faster than they are copied.
  size_t nodes_with_one_in_memory(uint64_t id) {
    std::set<std::string> nodes;
    const auto task = shown(id);
    for (const auto& checkpoint : task["checkpoints"])
      if (const auto dataset = cluster_->client().dataset(checkpoint["name"]))
        for (const auto& replica : (*dataset)["replicas"])
          if (replica["in_fast"] == true) nodes.insert(replica["node"]);
    return nodes.size();
  }
  bool runs_whole(uint64_t id, int attempt) {
    const auto task = shown(id);
    return task["state"] == "running" && task["attempt"] == attempt;
  }
  int began_at(uint64_t id) {
    const auto log = cluster_->client().log(id).value_or("");
    int step = -1;
    std::sscanf(log.c_str(), "began at %d", &step);
    return step;
  }
  void expect_success(uint64_t id) {
    std::ofstream(gate_) << "open";
    const auto task = cluster_->client().wait(id);
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2) << cluster_->logs();
  }

  std::unique_ptr<Cluster> cluster_;
  std::filesystem::path gate_;
};

TEST_F(Checkpointed, AGangThatLosesARankGoesOnFromItsNewestCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(start(3));
  if (!cluster_) return;
  const auto id = submit({"--ranks", "3", "--ranks-per-node", "1:1", "--max-restarts", "9"});
  ASSERT_TRUE(eventually([&] { return safe_iteration(id) >= 5; })) << shown(id).dump(2);
  const int safe = safe_iteration(id);
  const auto before = shown(id);
  EXPECT_GE(before["checkpointing"]["taken"], 1);
  EXPECT_GT(before["checkpointing"]["interval_s"], 0) << before["checkpointing"];
  EXPECT_GT(before["checkpoints"].back()["copy_ms"], 0) << before["checkpoints"];
  EXPECT_LE(before["checkpoints"].size(), 4u) << "three, and one that is about to go";
  EXPECT_TRUE(eventually([&] { return nodes_with_one_in_memory(id) == 2; })) << shown(id).dump(2);
  ASSERT_TRUE(kill_told(before["ranks"][1]["pid"])) << before["ranks"];
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 2); })) << shown(id).dump(2);
  ASSERT_TRUE(eventually([&] { return began_at(id) >= 0; }));
  EXPECT_GE(began_at(id), safe);
  const auto ranks = shown(id)["ranks"];
  for (const auto& rank : ranks) {
    ASSERT_TRUE(eventually([&] { return began_at(rank["id"]) >= 0; })) << rank.dump(2);
    EXPECT_EQ(began_at(rank["id"]), began_at(id)) << "all begin from the same";
  }
  expect_success(id);
}

TEST_F(Checkpointed, ANodeThatIsLostTakesNoSafeCheckpointAlong) {
  ASSERT_NO_FATAL_FAILURE(start(3));
  if (!cluster_) return;
  const auto id = submit({"--ranks", "2", "--ranks-per-node", "1:1", "--max-restarts", "9"});
  ASSERT_TRUE(eventually([&] { return safe_iteration(id) >= 5; })) << shown(id).dump(2);
  const int safe = safe_iteration(id);
  const std::string node = shown(id)["ranks"][0]["node"];
  int index = 0;
  while (Cluster::node_name(index) != node) ++index;
  cluster_->node(index).kill_now();
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 2); }, 2 * kPatience)) << shown(id).dump(2);
  const auto ranks = shown(id)["ranks"];
  for (const auto& rank : ranks) EXPECT_NE(rank["node"], node);
  ASSERT_TRUE(eventually([&] { return began_at(id) >= 0; }));
  EXPECT_GE(began_at(id), safe);
  expect_success(id);
}

TEST_F(Checkpointed, OnOneNodeACheckpointCountsAtOnceAndTheCoordinatorMayDie) {
  ASSERT_NO_FATAL_FAILURE(start(1, 30'000));
  if (!cluster_) return;
  const auto id = submit({"--ranks", "2", "--max-restarts", "9"});
  ASSERT_TRUE(eventually([&] { return safe_iteration(id) >= 5; })) << shown(id).dump(2);
  EXPECT_EQ(shown(id)["checkpoints"].back()["nodes_wanted"], 1);
  cluster_->coordinator().kill_now();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(1); }));
  const int safe = safe_iteration(id);
  EXPECT_GE(safe, 5);
  // A coordinator that has just begun knows the pid when the node has told it again.
  ASSERT_TRUE(eventually([&] { return kill_told(shown(id)["ranks"][0]["pid"]); })) << shown(id);
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 2); })) << shown(id).dump(2);
  ASSERT_TRUE(eventually([&] { return began_at(id) >= 0; }));
  EXPECT_GE(began_at(id), safe);
  const auto table = tierctl_at(cluster_->address(), {"task", "show", std::to_string(id)});
  EXPECT_NE(table.out.find("Checkpoints that are kept"), std::string::npos) << table.out;
  expect_success(id);
}

}  // namespace
}  // namespace tierpilot::test
