// tierload run on a real cluster, and following what a task prints while it runs.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

class WorkloadRun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!cluster_unavailable()) cluster_ = std::make_unique<Cluster>(ClusterOptions{});
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
  static Outcome run(const char* program_variable, Argv arguments) {
    arguments.insert(arguments.begin(), program(program_variable));
    return run_command(arguments, {{"TIERPILOT_COORDINATOR", cluster_->address()}});
  }
  static inline std::unique_ptr<Cluster> cluster_;
};

const Argv kSmallWorkload{"-j",         "run",    "--tasks",    "12",     "--datasets", "4",
                          "--min-size", "128KiB", "--max-size", "256KiB", "--rate",     "50"};

TEST_F(WorkloadRun, EveryTaskIsRunAndNoDatasetStays) {
  const auto outcome = run("TIERPILOT_TEST_TIERLOAD", kSmallWorkload);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const auto summary = parse_json<Json>(outcome.out)["summary"];
  EXPECT_EQ(summary["tasks"], 12);
  EXPECT_EQ(summary["failed"], 0);
  EXPECT_GE(summary["response_ms"]["p99"].get<double>(),
            summary["response_ms"]["mean"].get<double>());
  const auto left = run("TIERPILOT_TEST_TIERCTL", {"-j", "dataset", "list"});
  EXPECT_TRUE(parse_json<Json>(left.out)["datasets"].empty()) << left.out;
}

TEST_F(WorkloadRun, KeepLeavesTheDatasets) {
  auto arguments = kSmallWorkload;
  arguments.insert(arguments.end(), {"--keep", "--prefix", "kept"});
  const auto outcome = run("TIERPILOT_TEST_TIERLOAD", arguments);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const auto left = run("TIERPILOT_TEST_TIERCTL", {"-j", "dataset", "list"});
  EXPECT_EQ(parse_json<Json>(left.out)["datasets"].size(), 4u) << left.out;
}

TEST_F(WorkloadRun, FollowedLogsArriveWhileTheTaskRuns) {
  const auto gate = (cluster_->folder() / "gate").string();
  const auto submitted = cluster_->client().submit(
      {shell_task("echo first; while [ ! -e " + gate + " ]; do sleep 0.05; done; echo last")});
  ASSERT_TRUE(submitted) << submitted.error().message;
  const auto id = std::to_string(submitted->tasks.at(0));
  const auto log = cluster_->folder() / "follow.out";
  Process follower({program("TIERPILOT_TEST_TIERCTL"), "--connect", cluster_->address(), "task",
                    "logs", "-f", id},
                   log);
  ASSERT_TRUE(eventually([&] { return read_text(log) == "first\n"; })) << read_text(log);
  EXPECT_TRUE(follower.running());
  std::ofstream(gate) << "open";
  const auto status = follower.wait();
  ASSERT_TRUE(status) << "it follows a task that has ended";
  EXPECT_EQ(*status, 0);
  EXPECT_EQ(read_text(log), "first\nlast\n");
}

}  // namespace
}  // namespace tierpilot::test
