// What a real cluster did, exported and read as a workload of the simulator.
#include <gtest/gtest.h>

#include <fstream>

#include "base/text/json_text.h"
#include "policies/sim/trace/readers.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

class HistoryExport : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(ClusterOptions{});
  }
  Outcome history(Argv arguments) {
    arguments.insert(arguments.begin(), {program("TIERPILOT_TEST_TIERCTL"), "history", "export"});
    return run_command(arguments, {{"TIERPILOT_COORDINATOR", cluster_->address()}});
  }
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(HistoryExport, AWeekComesBackAsAWorkload) {
  auto& client = cluster_->client();
  ASSERT_TRUE(client.add_dataset_zeros("genes", 64 << 10));
  constexpr int kTasks = 520;  // more than a page
  auto quick = shell_task("true");
  ASSERT_TRUE(client.submit_many(quick, kTasks, 50));
  auto reader = shell_task("sleep 0.3");
  reader.datasets = {{"genes", false}};
  reader.units = 2;
  const auto submitted = client.submit({reader});
  ASSERT_TRUE(submitted) << submitted.error().message;
  const auto ended = client.wait(submitted->tasks.at(0));
  ASSERT_TRUE(ended) << ended.error().message;

  const auto file = (cluster_->folder() / "history.jsonl").string();
  const auto outcome = history({"--since", "1h", "-o", file, "-j"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(parse_json<Json>(outcome.err)["exported"]["tasks"], kTasks + 1);

  const auto trace = sim::read_history(file, {});
  ASSERT_TRUE(trace) << trace.error().message;
  const auto& workload = trace->workload;
  EXPECT_EQ(trace->summary.rows, kTasks + 1u);
  ASSERT_FALSE(workload.tasks.empty());
  const sim::Task* of_reader = nullptr;
  for (const auto& task : workload.tasks)
    if (task.use_count > 0) of_reader = &task;
  ASSERT_TRUE(of_reader);
  EXPECT_EQ(of_reader->units, 2u);
  EXPECT_GE(of_reader->operations, 0.3 * sim::kReferenceOperationsPerSecond);
  EXPECT_EQ(workload.datasets.at(workload.uses_of(*of_reader)[0].dataset).bytes, 64u << 10);

  const auto nothing = history({"--until", "1h"});
  EXPECT_EQ(nothing.code, 0) << nothing.err;
  EXPECT_EQ(std::ranges::count(nothing.out, '\n'), 1) << "only the header";
}

}  // namespace
}  // namespace tierpilot::test
