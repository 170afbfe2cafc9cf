#include "policies/sim/sharing/full_load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

namespace tierpilot::sharing {
namespace {

const std::filesystem::path kTraces = TRACES;

std::map<std::string, double> allocation(const PodTrace& trace, uint32_t seeds,
                                         double FullLoadRun::*what) {
  const auto runs =
      run_full_load(trace, {.policies = {"whole", "best-fit", "fgd", "share"}, .seeds = seeds});
  std::map<std::string, double> means;
  for (const auto& run : runs.value()) means[run.policy] += run.*what / seeds;
  return means;
}

TEST(FullLoad, AsksForWhatItIsToldAndKeepsTheMix) {
  const auto trace = generate_pods(1, 20, 500);
  uint64_t capacity = 0, asked = 0;
  for (const auto& node : trace.nodes) capacity += node.free_milli();
  for (const auto& request : inflated(trace, 1.3, 1)) asked += request.total_milli();
  EXPECT_GE(asked, 1.3 * static_cast<double>(capacity));
  EXPECT_LE(asked, 1.3 * static_cast<double>(capacity) + 8000);
  EXPECT_EQ(inflated(trace, 1.3, 1), inflated(trace, 1.3, 1));
  EXPECT_NE(inflated(trace, 1.3, 1), inflated(trace, 1.3, 2));
}

TEST(FullLoad, SharingAllocatesMoreThanWholeUnits) {
  const auto means = allocation(generate_pods(2, 60, 800), 2, &FullLoadRun::allocation);
  EXPECT_GT(means.at("share"), means.at("whole"));
  EXPECT_LE(means.at("share"), 1);
}

TEST(FullLoad, ReachesThePublishedAllocationOnThePublishedTrace) {
  const auto pods = kTraces / "openb_pod_list_default.csv";
  if (!std::filesystem::exists(pods)) GTEST_SKIP() << pods << " is not here";
  const auto trace = read_pods(pods, kTraces / "openb_node_list_gpu_node.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const auto means = allocation(*trace, 3, &FullLoadRun::allocation_at_capacity);
  EXPECT_NEAR(means.at("fgd"), 0.952, 0.004);
  EXPECT_GE(means.at("share"), 0.952);
}

}  // namespace
}  // namespace tierpilot::sharing
