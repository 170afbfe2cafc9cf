// Nodes that stop, come back or die while their tasks run.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"
#include "tests/system/journal.h"

namespace tierpilot::test {
namespace {

class StoppedDaemon : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 2, .units = 1, .lease_ms = 2000, .max_attempts = 50});
    journal_ = std::make_unique<Journal>(cluster_->folder());
    gate_ = cluster_->folder() / "gate";
  }

  // Submits a task that runs until the gate opens; returns once its first run has started.
  void start_task() {
    const auto submitted = client().submit({journal_->task(
        fmt::format("sleep 1000 & while [ ! -e {} ]; do sleep 0.1; done; kill $!", gate_.string()),
        "watched")});
    ASSERT_TRUE(submitted) << submitted.error().message;
    task_ = submitted->tasks[0];
    ASSERT_TRUE(eventually([&] { return !runs().empty(); }));
  }

  std::vector<Journal::Run> runs() const { return journal_->read().runs["watched"]; }
  Client& client() { return cluster_->client(); }
  static int node_index(const std::string& name) { return name == Cluster::node_name(0) ? 0 : 1; }

  // Opens the gate: what runs now succeeds, and no run ever met another.
  void expect_success() {
    std::ofstream(gate_) << "open";
    const auto ended = client().wait(task_);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
    const auto record = journal_->read();
    EXPECT_TRUE(record.overlaps.empty()) << fmt::format("{}", fmt::join(record.overlaps, "\n"));
    EXPECT_TRUE(runs().back().ended);
    int ended_runs = 0;
    for (const auto& run : runs()) ended_runs += run.ended;
    EXPECT_EQ(ended_runs, 1);
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Journal> journal_;
  std::filesystem::path gate_;
  uint64_t task_ = 0;
};

TEST_F(StoppedDaemon, ItsTaskIsDeadBeforeAnotherNodeGetsIt) {
  ASSERT_NO_FATAL_FAILURE(start_task());
  const auto first = runs().front();
  const auto& stopped = cluster_->node(node_index(first.node));
  stopped.signal(SIGSTOP);
  // As soon as the coordinator no longer counts the first try, its process must be gone.
  ASSERT_TRUE(eventually([&] {
    const auto task = client().show(task_);
    return task && ((*task)["state"] == "queued" || (*task)["attempt"] != first.attempt);
  }));
  EXPECT_FALSE(is_alive(first.pid)) << "process " << first.pid << " outlived its lease";
  ASSERT_TRUE(eventually([&] { return runs().size() >= 2; }));
  EXPECT_NE(runs().back().node, first.node);

  stopped.signal(SIGCONT);
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(2); }));
  const auto task = client().show(task_);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "running") << "the old try was counted: " << task->dump(2);
  ASSERT_NO_FATAL_FAILURE(expect_success());
  EXPECT_EQ(runs().size(), 2u);

  // The node that was stopped takes work again.
  auto pinned = shell_task("true");
  pinned.node = first.node;
  const auto submitted = client().submit({pinned});
  ASSERT_TRUE(submitted) << submitted.error().message;
  EXPECT_EQ(client().wait(submitted->tasks[0]).value()["state"], "succeeded");
}

TEST_F(StoppedDaemon, AKilledDaemonTakesItsTasksAlongAndTheyRunAgain) {
  ASSERT_NO_FATAL_FAILURE(start_task());
  const auto first = runs().front();
  cluster_->node(node_index(first.node)).kill_now();
  EXPECT_TRUE(eventually([&] { return !is_alive(first.pid); }, std::chrono::seconds(10)));
  ASSERT_TRUE(eventually([&] { return runs().size() >= 2; }));
  EXPECT_NE(runs().back().node, first.node);
  ASSERT_NO_FATAL_FAILURE(expect_success());
  // Started anew, it is the same node.
  cluster_->start_node(node_index(first.node));
  EXPECT_TRUE(eventually([&] { return cluster_->nodes_are_up(2); }));
}

TEST_F(StoppedDaemon, ADaemonStartedAnewWithinItsLeaseGivesItsTasksUp) {
  ASSERT_NO_FATAL_FAILURE(start_task());
  const auto first = runs().front();
  const int index = node_index(first.node);
  cluster_->node(index).kill_now();
  cluster_->start_node(index);
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(2) && runs().size() >= 2; }));
  EXPECT_FALSE(is_alive(first.pid));
  ASSERT_NO_FATAL_FAILURE(expect_success());
}

TEST_F(StoppedDaemon, OneThatIsGoneIsStillListedByTheNextCoordinator) {
  cluster_->node(1).kill_now();
  cluster_->coordinator().kill_now();
  cluster_->start_coordinator();
  const auto listed = [&] {
    const auto all = tierctl_json(cluster_->address(), {"node", "list"});
    for (const auto& node : all["nodes"])
      if (node["info"]["name"] == Cluster::node_name(1)) return node;
    return Json();
  };
  const auto state = [&] {
    const auto node = listed();
    return node.is_null() ? "not listed" : node["state"].get<std::string>();
  };
  EXPECT_EQ(state(), "expected");
  EXPECT_TRUE(listed()["info"]["units"].is_null()) << "nobody has told this coordinator";
  EXPECT_TRUE(eventually([&] { return state() == "lost"; }));
  const auto shown = tierctl_json(cluster_->address(), {"node", "show", Cluster::node_name(1)});
  ASSERT_FALSE(shown["notes"].empty());
  EXPECT_EQ(shown["notes"][0]["what"], "lost");
}

}  // namespace
}  // namespace tierpilot::test
