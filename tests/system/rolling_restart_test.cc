// Upgrades and repairs of nodes while their tasks run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <set>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"
#include "tests/system/journal.h"

namespace tierpilot::test {
namespace {

constexpr int kNodes = 3;
constexpr int kTasks = 240;

class RollingRestart : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }

  // With one try for each task: a fault of a node that counted would fail it.
  void start(int drain_s, int nodes = kNodes) {
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = nodes, .units = 2, .max_attempts = 1, .drain_s = drain_s});
    journal_ = std::make_unique<Journal>(cluster_->folder());
  }
  Client& client() { return cluster_->client(); }
  void submit_load() {
    std::vector<TaskPlan> plans;
    for (int i = 0; i < kTasks; ++i)
      plans.push_back(journal_->task("sleep 0.05", fmt::format("t{}", i)));
    const auto submitted = client().submit(plans);
    ASSERT_TRUE(submitted) << submitted.error().message;
    tasks_ = submitted->tasks;
  }
  // Ends it politely and starts it anew; returns when it is up again.
  void restart_node(int index) {
    cluster_->node(index).signal(SIGTERM);
    ASSERT_TRUE(cluster_->node(index).wait()) << "it did not stop";
    cluster_->start_node(index);
    ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(kNodes); }, 2 * kPatience));
  }
  size_t tasks_begun() { return journal_->read().runs.size(); }
  std::string order_of(int index) {
    const auto nodes = client().nodes();
    return nodes ? nodes->at(static_cast<size_t>(index))["order"].get<std::string>() : "";
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Journal> journal_;
  std::vector<uint64_t> tasks_;
};

TEST_F(RollingRestart, UnderLoadNoTaskFailsAndNoneRunsTwice) {
  ASSERT_NO_FATAL_FAILURE(start(30));
  ASSERT_NO_FATAL_FAILURE(submit_load());
  for (int index = 0; index < kNodes; ++index) {
    const auto before = tasks_begun();
    ASSERT_TRUE(eventually([&] { return tasks_begun() > before || before == kTasks; }));
    ASSERT_NO_FATAL_FAILURE(restart_node(index));
  }
  for (const uint64_t id : tasks_) {
    const auto task = client().wait(id);
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  }
  const auto record = journal_->read();
  EXPECT_TRUE(record.overlaps.empty()) << fmt::format("{}", fmt::join(record.overlaps, "\n"));
  ASSERT_EQ(record.runs.size(), static_cast<size_t>(kTasks));
  for (const auto& [key, runs] : record.runs)
    EXPECT_EQ(runs.size(), 1u) << key << " was begun more than once";
}

TEST_F(RollingRestart, WithoutADrainTasksBeginAgainAndNoneFails) {
  ASSERT_NO_FATAL_FAILURE(start(0, 1));
  const auto gate = cluster_->folder() / "gate";
  std::vector<TaskPlan> plans;
  for (int i = 0; i < 6; ++i)
    plans.push_back(
        journal_->task(fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate.string()),
                       fmt::format("t{}", i)));
  const auto submitted = client().submit(plans);
  ASSERT_TRUE(submitted) << submitted.error().message;
  ASSERT_TRUE(eventually([&] { return tasks_begun() >= 2; }));
  cluster_->node(0).signal(SIGTERM);
  ASSERT_TRUE(cluster_->node(0).wait());
  std::ofstream(gate) << "open";
  cluster_->start_node(0);
  for (const uint64_t id : submitted->tasks) {
    const auto task = client().wait(id);
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  }
  EXPECT_TRUE(journal_->read().overlaps.empty());
}

// Its lease is longer than anybody's patience here.
TEST_F(RollingRestart, AKilledDaemonsTasksGoOnAtOnceWhenItIsBack) {
  cluster_ = std::make_unique<Cluster>(ClusterOptions{.nodes = 1, .units = 2, .lease_ms = 600'000});
  journal_ = std::make_unique<Journal>(cluster_->folder());
  const auto submitted = client().submit({journal_->task("sleep 0.5", "killed")});
  ASSERT_TRUE(submitted) << submitted.error().message;
  ASSERT_TRUE(eventually([&] { return !journal_->read().runs["killed"].empty(); }));
  cluster_->node(0).kill_now();
  cluster_->start_node(0);
  const auto task = client().wait(submitted->tasks[0]);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  EXPECT_TRUE(journal_->read().overlaps.empty());
}

TEST_F(RollingRestart, AnOperatorDrainsANodeAndOpensItAgain) {
  ASSERT_NO_FATAL_FAILURE(start(0, 2));
  const auto gate = cluster_->folder() / "gate";
  auto plan =
      journal_->task(fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate.string()), "long");
  const auto submitted = client().submit({plan});
  ASSERT_TRUE(submitted);
  ASSERT_TRUE(eventually([&] { return !journal_->read().runs["long"].empty(); }));
  const auto first = journal_->read().runs["long"].front().node;
  const int index = first == Cluster::node_name(0) ? 0 : 1;
  const auto drained =
      tierctl_at(cluster_->address(), {"-j", "node", "drain", first, "--deadline", "0", "--wait"});
  EXPECT_EQ(drained.code, 0) << drained.err;
  EXPECT_EQ(order_of(index), "drained");
  ASSERT_TRUE(eventually([&] { return journal_->read().runs["long"].size() == 2; }));
  EXPECT_NE(journal_->read().runs["long"].back().node, first);
  // The coordinator remembers it, whoever restarts.
  cluster_->coordinator().end();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(2); }));
  EXPECT_EQ(order_of(index), "drained");
  const auto listed = tierctl_at(cluster_->address(), {"node", "list"});
  EXPECT_NE(listed.out.find("drained"), std::string::npos) << listed.out;
  auto bound = shell_task("true");
  bound.node = first;
  const auto waits = client().submit({bound});
  ASSERT_TRUE(waits) << waits.error().message;
  EXPECT_EQ(client().wait(waits->tasks[0], 1000).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(tierctl_at(cluster_->address(), {"node", "remove", first}).code, 1) << "it is up";
  EXPECT_EQ(tierctl_at(cluster_->address(), {"node", "uncordon", first}).code, 0);
  EXPECT_EQ(client().wait(waits->tasks[0]).value()["state"], "succeeded");
  std::ofstream(gate) << "open";
  EXPECT_EQ(client().wait(submitted->tasks[0]).value()["state"], "succeeded");
  EXPECT_TRUE(journal_->read().overlaps.empty());
}

}  // namespace
}  // namespace tierpilot::test
