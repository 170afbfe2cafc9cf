#include "policies/sim/sharing/full_load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/random.h"

namespace tierpilot::sharing {
namespace {

const std::filesystem::path kTraces = TRACES;

std::map<std::string, double> allocation(const PodTrace& trace, uint32_t seeds,
                                         double FullLoadRun::*what,
                                         const std::vector<std::string>& policies = {
                                             "whole", "best-fit", "fgd", "share"}) {
  const auto runs = run_full_load(trace, {.policies = policies, .seeds = seeds});
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

struct Change {
  const char* name;
  void (*apply)(PodTrace&, SeededRandom&);
};
// Lists of other kinds than `share` was made with.
const Change kChanges[]{
    {"every pod wants a model or any, one unit a node",
     [](PodTrace& trace, SeededRandom& random) {
       for (size_t i = 0; i < trace.nodes.size(); ++i) {
         trace.nodes[i].units.resize(1);
         trace.nodes[i].model = static_cast<uint8_t>(4 * i / trace.nodes.size());
       }
       for (auto& pod : trace.pods)
         if (random.unit() < 0.75) pod.request.models = uint64_t{1} << random.below(4);
     }},
    {"few cores",
     [](PodTrace& trace, SeededRandom&) {
       for (auto& node : trace.nodes) node.cpu_milli = node.cpu_milli / 5 * 2;
     }},
    {"small shares",
     [](PodTrace& trace, SeededRandom& random) {
       for (auto& pod : trace.pods)
         if (pod.request.units == 1)
           pod.request.share.milli = static_cast<uint32_t>(10 + 10 * random.below(15));
     }},
    {"half of the pods want no unit", [](PodTrace& trace, SeededRandom& random) {
       for (auto& pod : trace.pods)
         if (random.unit() < 0.5) pod.request.units = 0;
     }}};

TEST(FullLoad, ShareIsBelowNobodyWhateverTheListsAreLike) {
  for (const auto& change : kChanges) {
    auto trace = generate_pods(4, 100, 3000);
    SeededRandom random(9);
    change.apply(trace, random);
    const auto mean = allocation(trace, 10, &FullLoadRun::allocation,
                                 {"fgd", "share-published", "first-fit", "share"});
    for (const auto& [policy, allocation] : mean)
      EXPECT_GE(mean.at("share"), allocation - 0.003) << change.name << ": " << policy;
  }
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
