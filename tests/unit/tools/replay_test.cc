#include "tools/tierload/replay.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/unit/tools/fake_cluster.h"

namespace tierpilot::tierload {
namespace {

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() : connection_(*ClusterConnection::open({.address = fake_.address()})) {}

  // `count` tasks, `gap_ms` apart.
  static Workload workload(size_t count, int64_t gap_ms) {
    Workload workload{.datasets = {{"d0", 100, 1}, {"d1", 200, 1}}, .tasks = {}};
    for (size_t i = 0; i < count; ++i)
      workload.tasks.push_back({.name = "t" + std::to_string(i),
                                .arrival_ms = static_cast<int64_t>(i) * gap_ms,
                                .kernel = "sum",
                                .parameters = {},
                                .datasets = {{"d0", false}, {"d1", true}},
                                .units = 1,
                                .memory_bytes = 0,
                                .operations = {}});
    return workload;
  }
  static Status quiet(const ReplayProgress&) { return {}; }

  FakeCluster fake_;
  std::unique_ptr<ClusterConnection> connection_;
};

TEST_F(ReplayTest, SubmitsEveryTaskAndCollectsItsFate) {
  const auto result = replay(*connection_, workload(200, 0), "/bin/tierload", quiet);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->tasks.size(), 200u);
  for (const auto& task : result->tasks) {
    EXPECT_TRUE(task.succeeded);
    EXPECT_EQ(task.started_ms - task.submitted_ms, 250);
  }
  EXPECT_EQ(fake_.state.submits.size(), 200u);
  EXPECT_EQ(fake_.state.submits[0].first_argv[0], "/bin/tierload");
  EXPECT_EQ(fake_.state.submits[0].first_datasets, (std::vector<std::string>{"d0", "d1:rw"}));
}

TEST_F(ReplayTest, SubmitsNoTaskBeforeItsTime) {
  const int64_t start_ns = system_clock().boot_ns();
  const auto result = replay(*connection_, workload(4, 100), "p", quiet);
  ASSERT_TRUE(result);
  EXPECT_GE(system_clock().boot_ns() - start_ns, 300'000'000);
  EXPECT_EQ(fake_.state.submits.back().names[0], "t3");
}

TEST_F(ReplayTest, AFailedTaskIsAFactNotAnError) {
  const auto result = replay(*connection_, workload(1, 0), "false", quiet);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->tasks.at(0).succeeded);
}

TEST_F(ReplayTest, TheTickCanEndIt) {
  const auto result = replay(*connection_, workload(2, 60'000), "p", [](const ReplayProgress&) {
    return Status(fail(ErrorCode::kUnavailable, "a node died"));
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "a node died");
}

TEST_F(ReplayTest, ALostCoordinatorIsAnErrorOfTheSubmit) {
  auto late = workload(1, 0);
  late.tasks[0].arrival_ms = 500;
  const auto result = replay(*connection_, late, "p", [&](const ReplayProgress&) {
    fake_.stop();
    return Status{};
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnreachable) << result.error().message;
  EXPECT_NE(result.error().message.find("could not be submitted"), std::string::npos);
}

TEST_F(ReplayTest, DatasetsAreRegisteredAndRemoved) {
  fake_.state.datasets.clear();
  const auto load = workload(1, 0);
  ASSERT_TRUE(register_datasets(*connection_, load, {"n1"}));
  EXPECT_EQ(fake_.state.datasets.size(), 2u);
  const auto again = register_datasets(*connection_, load, {"n1"});
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("dataset 'd0' on node 'n1'"), std::string::npos);
  fake_.state.datasets.erase("d0");
  EXPECT_TRUE(remove_datasets(*connection_, load));
  EXPECT_TRUE(fake_.state.datasets.empty());
}

TEST_F(ReplayTest, FindsTheNodesThatAreUp) {
  EXPECT_EQ(*nodes_up(*connection_), std::vector<std::string>{"n1"});
}

}  // namespace
}  // namespace tierpilot::tierload
