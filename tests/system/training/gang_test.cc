// Gangs on real daemons: real ranks, a real PyTorch script, and ranks, nodes and the coordinator
// that die under them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"
#include "tests/system/command_line.h"
#include "tests/system/journal.h"

namespace tierpilot::test {
namespace {

constexpr int kGangNodes = 3;

class Gang : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    make_cluster(3000);
  }
  void make_cluster(int64_t lease_ms) {
    cluster_.reset();
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = kGangNodes, .units = 2, .lease_ms = lease_ms, .max_attempts = 50});
    journal_ = std::make_unique<Journal>(cluster_->folder());
    gate_ = cluster_->folder() / "gate";
  }
  Client& client() { return cluster_->client(); }
  std::vector<std::string> in_gang(std::vector<std::string> options, const TaskPlan& plan) {
    std::vector<std::string> line{"-j", "task", "submit"};
    line.insert(line.end(), options.begin(), options.end());
    for (const auto& [name, value] : plan.env) {
      line.push_back("--env");
      line.push_back(name + "=" + value);
    }
    line.push_back("--");
    line.insert(line.end(), plan.argv.begin(), plan.argv.end());
    return line;
  }
  uint64_t submit(const std::vector<std::string>& options, const TaskPlan& plan) {
    return submitted_id(tierctl_at(cluster_->address(), in_gang(options, plan)));
  }
  // Ranks that stay until the gate opens. No rank of one number may meet another.
  uint64_t submit_waiting(int ranks) {
    const auto plan =
        journal_->task(fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate_.string()), "");
    return submit({"--ranks", std::to_string(ranks), "--max-restarts", "9"}, plan);
  }
  Json shown(uint64_t id) { return test::shown(client(), id); }
  bool runs_whole(uint64_t id, int attempt) {
    const auto task = shown(id);
    return task["state"] == "running" && task["attempt"] == attempt;
  }
  void expect_success(uint64_t id) {
    std::ofstream(gate_) << "open";
    const auto task = client().wait(id);
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2) << cluster_->logs();
    const auto& overlaps = journal_->read().overlaps;
    EXPECT_TRUE(overlaps.empty()) << fmt::format("{}", fmt::join(overlaps, "\n"));
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Journal> journal_;
  std::filesystem::path gate_;
};

TEST_F(Gang, APlainPyTorchScriptRunsUnchanged) {
  if (std::system("/usr/bin/python3 -c 'import torch.distributed' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3-torch is not installed";
  TaskPlan plan;
  plan.argv = {"/usr/bin/python3", "-c", R"(
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
ones = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(ones)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(ones.item()))
)"};
  const auto id = submit({"--ranks", "3", "--ranks-per-node", "1:1", "--max-restarts", "0"}, plan);
  const auto task = client().wait(id, 120'000);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "succeeded") << shown(id).dump(2);
  EXPECT_EQ(client().log(id).value(), "rank 0 of 3 sum 6\n");
  std::set<std::string> nodes;
  const auto ranks = shown(id)["ranks"];
  ASSERT_EQ(ranks.size(), 3u);
  for (const auto& rank : ranks) {
    nodes.insert(rank["node"]);
    const auto log = client().log(rank["id"]);
    ASSERT_TRUE(log) << log.error().message;
    EXPECT_EQ(*log, fmt::format("rank {} of 3 sum 6\n", rank["rank"].get<int>()));
  }
  EXPECT_EQ(nodes.size(), 3u);
}

TEST_F(Gang, ARankThatIsKilledBringsTheWholeGangBack) {
  const auto id = submit_waiting(5);
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 1); })) << shown(id).dump(2);
  const auto victim = shown(id)["ranks"][3];
  ASSERT_TRUE(kill_told(victim["pid"])) << victim;
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 2); })) << shown(id).dump(2);
  EXPECT_EQ(shown(id)["restarts"], 1);
  const auto units = tierctl_at(cluster_->address(), {"-j", "unit", "list"});
  ASSERT_EQ(units.code, 0) << units.err;
  int failures = 0;
  const auto listed = parse_json<Json>(units.out);
  for (const auto& unit : listed["units"]) {
    failures += unit["failures"].get<int>();
    EXPECT_TRUE(unit["failures"] == 0 || unit["node"] == victim["node"]) << unit.dump(2);
  }
  EXPECT_EQ(failures, 1) << units.out << shown(id)["ranks"].dump(2);
  expect_success(id);
}

TEST_F(Gang, NoRankMeetsOneOfALaterTryWhenItsNodeStandsStill) {
  const auto id = submit_waiting(4);
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 1); }));
  const std::string node = shown(id)["ranks"][0]["node"];
  const int index = node == Cluster::node_name(0) ? 0 : node == Cluster::node_name(1) ? 1 : 2;
  cluster_->node(index).signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 2); }, 2 * kPatience)) << shown(id).dump(2);
  cluster_->node(index).signal(SIGCONT);
  const auto task = shown(id);
  for (const auto& rank : task["ranks"]) EXPECT_NE(rank["node"], node);
  expect_success(id);
}

TEST_F(Gang, TheCoordinatorMayDieUnderIt) {
  make_cluster(30'000);  // it may take its time to be back
  const auto id = submit_waiting(6);
  ASSERT_TRUE(eventually([&] { return runs_whole(id, 1); }));
  cluster_->coordinator().kill_now();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(kGangNodes); }));
  EXPECT_TRUE(eventually([&] { return runs_whole(id, 1); }))
      << shown(id).dump(2) << cluster_->logs();
  expect_success(id);
}

TEST_F(Gang, WhatAJobSaysIsShownAndItHearsThatItIsToStop) {
  TaskPlan plan;
  plan.argv = {"/usr/bin/python3", "-c", R"(
import sys, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
import tierpilot
job = tierpilot.job()
step = 0
while job.should_stop() is None:
    step += 1
    job.report(iteration=step, iterations=100000, loss=1 / step, accuracy=0.5)
    time.sleep(0.01)
print("told:", job.should_stop(), flush=True)
)"};
  plan.env = {{"PYTHONPATH", std::string(std::getenv("TIERPILOT_TEST_SOURCE")) + "/python"}};
  const auto id = submit({"--ranks", "2"}, plan);
  ASSERT_TRUE(eventually([&] { return shown(id)["progress"].size() >= 2; })) << shown(id).dump(2);
  const auto last = shown(id)["progress"].back();
  EXPECT_GT(last["iteration"].get<int>(), 1);
  EXPECT_EQ(last["iterations"], 100000);
  EXPECT_LT(last["loss"].get<double>(), 1);
  EXPECT_EQ(last["measures"][0]["name"], "accuracy");
  ASSERT_TRUE(client().cancel(id));
  const auto task = client().wait(id);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "cancelled");
  EXPECT_EQ(client().log(id).value(), "told: cancelled\n");
  const auto watched = tierctl_at(cluster_->address(), {"task", "watch", std::to_string(id)});
  EXPECT_EQ(watched.code, 1);
  EXPECT_NE(watched.out.find("cancelled, iteration "), std::string::npos) << watched.out;
}

TEST_F(Gang, WrongOnesAreRefusedWithAReason) {
  const auto refused = [&](const std::vector<std::string>& options) {
    const auto answer = tierctl_at(cluster_->address(), in_gang(options, shell_task("true")));
    EXPECT_NE(answer.code, 0);
    return answer.err;
  };
  EXPECT_NE(refused({"--ranks", "7"}).find("could run 6 of its 7 ranks"), std::string::npos);
  EXPECT_NE(refused({"--ranks", "2", "--engine", "gpu"}).find("could run 0 of its 2 ranks"),
            std::string::npos);
  EXPECT_NE(refused({"--ranks", "2", "--ranks-per-node", "3:2"}).find("MIN:MAX"),
            std::string::npos);
  EXPECT_NE(refused({"--engine", "gpu"}).find("with ranks"), std::string::npos);
  EXPECT_NE(tierctl_at(cluster_->address(), {"unit", "show", "n/cpu/9"}).err.find("unit list"),
            std::string::npos);
}

}  // namespace
}  // namespace tierpilot::test
