// Modes, comparison, versions and events of learned policies, through tierctl on a real cluster.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

class PolicyGuard : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(ClusterOptions{.policy = "dqn"});
  }
  Outcome tierctl(Argv arguments) {
    arguments.insert(arguments.begin(), program("TIERPILOT_TEST_TIERCTL"));
    arguments.emplace_back("-j");
    return run_command(arguments, {{"TIERPILOT_COORDINATOR", cluster_->address()}});
  }
  Json value(Argv arguments) {
    const auto outcome = tierctl(std::move(arguments));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? parse_json<Json>(outcome.out) : Json{};
  }
  // Runs `count` tasks to their end; the decisions of the last of them.
  Json run_tasks(int count) {
    auto task = shell_task("true");
    task.datasets = {{"genes", false}};
    const auto submitted = cluster_->client().submit(std::vector<TaskPlan>(count, task));
    EXPECT_TRUE(submitted) << submitted.error().message;
    for (const uint64_t id : submitted->tasks) EXPECT_TRUE(cluster_->client().wait(id));
    return cluster_->client().explain(submitted->tasks.back()).value();
  }
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(PolicyGuard, AnOperatorSeesComparesAndGoesBack) {
  ASSERT_TRUE(cluster_->client().add_dataset_zeros("genes", 64 << 10));
  run_tasks(60);

  const auto shown = value({"policy", "show", "dqn"});
  EXPECT_EQ(shown["policy"]["mode"], "enforce");
  EXPECT_EQ(shown["policy"]["standing"], "trusted");
  ASSERT_FALSE(shown["versions"].empty());
  EXPECT_EQ(shown["versions"][0]["why"], "the first one");
  const int asked = shown["guard"]["asked"], control = shown["guard"]["control"];
  EXPECT_GE(asked + control, 60);
  EXPECT_GT(asked, control);

  const auto compared = value({"policy", "compare"});
  EXPECT_TRUE(compared["concurrent"]);
  ASSERT_EQ(compared["comparisons"].size(), 2u);
  for (const auto& row : compared["comparisons"]) {
    EXPECT_EQ(row["first"], "dqn");
    // Without calibrated tiers no reward is measured.
    if (row["measure"] != "response") continue;
    EXPECT_GE(row["of_first"]["count"], 30) << row.dump();
    EXPECT_LE(row["of_first"]["low"], row["of_first"]["mean"]);
    EXPECT_TRUE(row["judged"]);
  }

  EXPECT_EQ(value({"policy", "mode", "dqn", "shadow"})["policy"]["mode"], "shadow");
  const auto in_shadow = run_tasks(5).at(0);
  EXPECT_EQ(in_shadow["arm"], "shadow");
  EXPECT_NE(in_shadow["fallback"].get<std::string>().find("in shadow"), std::string::npos);

  const auto back = value({"policy", "rollback", "dqn", "1"});
  EXPECT_EQ(back["version"]["number"], 1);
  EXPECT_EQ(tierctl({"policy", "rollback", "dqn", "77"}).code, 3);
  EXPECT_EQ(tierctl({"policy", "mode", "dqn", "loud"}).code, 2);
  EXPECT_NE(tierctl({"policy", "mode", "random", "shadow"}).code, 0);
  EXPECT_NE(tierctl({"policy", "compare", "random"}).code, 0);

  cluster_->client().disconnect();
  cluster_->coordinator().end();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(2); }));
  const auto after = value({"policy", "show", "dqn"});
  EXPECT_EQ(after["policy"]["mode"], "shadow") << "an operator's word survives a restart";
  EXPECT_GE(after["versions"].size(), shown["versions"].size());
  std::multiset<std::string> what;
  for (const auto& event : after["events"]) what.insert(event["what"]);
  EXPECT_TRUE(what.count("mode") && what.count("rolled back")) << after["events"].dump();
  EXPECT_EQ(value({"status"})["health"]["policy_mode"], "shadow");

  value({"policy", "use", "least-loaded"});
  value({"policy", "mode", "dqn", "advise"});
  run_tasks(5);
  const auto others = value({"policy", "compare", "dqn", "least-loaded"});
  EXPECT_FALSE(others["concurrent"]);
  EXPECT_EQ(others["comparisons"][1]["of_second"]["count"], 5);
}

// Runs a gang of two ranks to its end; its decision.
Json run_gang(Cluster& cluster) {
  const auto id = submitted_id(
      tierctl_at(cluster.address(), {"-j", "task", "submit", "--ranks", "2", "--", "/bin/true"}));
  const auto task = cluster.client().wait(id);
  EXPECT_TRUE(task && (*task)["state"] == "succeeded");
  return cluster.client().explain(id).value().at(0);
}

TEST_F(PolicyGuard, GangPoliciesHaveModesAndAGuardOfTheirOwn) {
  const auto shown = value({"policy", "show", "ac"});
  EXPECT_EQ(shown["policy"]["decides"], "units of gangs");
  EXPECT_EQ(shown["policy"]["active"], true) << "the default, with the weights of the build tree";
  EXPECT_EQ(shown["policy"]["mode"], "enforce");
  EXPECT_EQ(shown["policy"]["standing"], "trusted");
  EXPECT_FALSE(shown.contains("learner")) << "it learns elsewhere";
  EXPECT_EQ(shown["policy"]["decides"],
            value({"policy", "show", "gang/random"})["policy"]["decides"]);
  EXPECT_EQ(value({"policy", "show", "random"})["policy"]["decides"], "where tasks run");

  const auto enforced = run_gang(*cluster_);
  EXPECT_EQ(enforced["policy"], "gang/ac");
  EXPECT_EQ(enforced["mode"], "enforce");
  EXPECT_NE(enforced["gang"]["heuristic"], "");
  EXPECT_GT(enforced["gang"]["expected_h"], 0);
  EXPECT_GT(enforced["gang"]["heuristic_h"], 0);
  EXPECT_EQ(enforced["gang"]["standing"], "trusted");

  EXPECT_EQ(value({"policy", "mode", "ac", "shadow"})["policy"]["mode"], "shadow");
  EXPECT_EQ(value({"policy", "mode", "dqn", "advise"})["policy"]["mode"], "advise");
  const auto in_shadow = run_gang(*cluster_);
  EXPECT_EQ(in_shadow["arm"], "shadow");
  EXPECT_NE(in_shadow["fallback"].get<std::string>().find("in shadow"), std::string::npos);
  EXPECT_EQ(value({"policy", "mode", "gang/ac", "advise"})["policy"]["mode"], "advise");

  const auto compared = value({"policy", "compare", "ac"});
  ASSERT_EQ(compared["comparisons"].size(), 1u);
  EXPECT_EQ(compared["comparisons"][0]["measure"], "goodput");
  EXPECT_TRUE(compared["comparisons"][0]["judged"]);
  EXPECT_NE(tierctl({"policy", "compare", "ac", "dqn"}).code, 0);
  EXPECT_NE(tierctl({"policy", "mode", "best-fit", "shadow"}).code, 0) << "it answers to no guard";
  EXPECT_NE(tierctl({"policy", "rollback", "ac", "1"}).code, 0);

  EXPECT_EQ(value({"policy", "use", "best-fit"})["policy"]["decides"], "units of gangs");
  EXPECT_EQ(run_gang(*cluster_)["policy"], "gang/best-fit");
  EXPECT_EQ(value({"status"})["health"]["policy"], "dqn") << "tasks are decided as before";

  cluster_->client().disconnect();
  cluster_->coordinator().end();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return cluster_->nodes_are_up(2); }));
  const auto after = value({"policy", "show", "ac"});
  EXPECT_EQ(after["policy"]["active"], true) << "as configured";
  EXPECT_EQ(after["policy"]["mode"], "advise") << "an operator's word survives a restart";
  EXPECT_EQ(after["events"][0]["what"], "mode");
}

}  // namespace
}  // namespace tierpilot::test
