// A disk under the coordinator's store that gives errors.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

class FailingDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    if (!std::getenv("TIERPILOT_TEST_FAILING_SYNC"))
      GTEST_SKIP() << "nothing is preloaded into sanitized programs";
  }

  ClusterOptions options() const {
    return {.nodes = 1, .prefix = [this](int process) {
              return process >= 0 ? Argv{}
                                  : Argv{"/usr/bin/env",
                                         "LD_PRELOAD=" + program("TIERPILOT_TEST_FAILING_SYNC"),
                                         "TIERPILOT_TEST_SYNCS_FAIL=" + flag_.string()};
            }};
  }
  void fail() const { std::ofstream{flag_}; }
  void mend() const { std::filesystem::remove(flag_); }

  TempFolder folder_{"/tmp"};
  const std::filesystem::path flag_ = folder_.path() / "fails";
};

TEST_F(FailingDisk, WhoIsToldThatItFailedHasNothingAndWhoWasToldNothingAsksAgain) {
  Cluster cluster(options());
  auto& client = cluster.client();
  const auto request = [](const std::string& id) {
    auto task = shell_task("true");
    task.name = id;
    return Request{id, {task}};
  };
  ASSERT_TRUE(client.submit(request("before").tasks, "before"));
  fail();
  const auto amid = client.submit_burst({request("amid")}, 1'500, [&] { mend(); }).at(0);
  ASSERT_FALSE(amid);
  EXPECT_NE(amid.error().message.find("disk I/O error"), std::string::npos) << amid.error().message;

  // In the log, and not known to be on disk.
  fail();
  const auto killed =
      client.submit_burst({request("killed")}, 1'500, [&] { cluster.coordinator().kill_now(); })
          .at(0);
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code, ErrorCode::kUnreachable) << killed.error().message;
  mend();
  cluster.start_coordinator();
  const auto again = client.submit(request("killed").tasks, "killed");
  ASSERT_TRUE(again) << again.error().message;
  const auto ended = client.wait(again->tasks.at(0));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ((*ended)["state"], "succeeded") << ended->dump(2);
  const auto tasks = client.tasks();
  ASSERT_TRUE(tasks);
  std::vector<std::string> names;
  for (const auto& task : *tasks) names.push_back(task["name"]);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"before", "killed"}));
}

TEST_F(FailingDisk, ACoordinatorDoesNotStartOnIt) {
  Cluster cluster(options());
  ASSERT_TRUE(cluster.client().submit({shell_task("true")}));
  cluster.coordinator().kill_now();
  fail();
  EXPECT_THROW(cluster.start_coordinator(), std::runtime_error);
  EXPECT_NE(cluster.logs().find("disk I/O error"), std::string::npos);
  mend();
  cluster.start_coordinator();
}

}  // namespace
}  // namespace tierpilot::test
