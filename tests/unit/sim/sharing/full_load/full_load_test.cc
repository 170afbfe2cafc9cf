#include "policies/sim/sharing/full_load/full_load.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "policies/sim/sharing/full_load/full_load_report.h"

namespace tierpilot::sharing {
namespace {

const std::filesystem::path kTraces = TRACES;

std::map<std::string, double> allocation(const PodTrace& trace, uint32_t seeds,
                                         double FullLoadRun::*what,
                                         const std::vector<std::string>& policies = {
                                             "whole", "best-fit", "fgd", "share"}) {
  const auto load = run_full_load(trace, {.policies = policies, .seeds = seeds});
  std::map<std::string, double> means;
  for (const auto& run : load.value().runs) means[run.policy] += run.*what / seeds;
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

// Neither at the end nor when as much has come as there is.
void nobody_is_above(const PodTrace& trace, const char* what) {
  const auto load = run_full_load(trace, {.policies = full_load_policies(), .seeds = 3}).value();
  ASSERT_EQ(load.bounds.size(), 3U);
  std::map<uint64_t, FullLoadRun> foreseen;
  for (const auto& run : load.runs)
    if (run.policy == kForesight) foreseen[run.seed] = run;
  for (const auto& run : load.runs) {
    const auto& bound = load.bounds[run.seed - load.bounds[0].seed];
    ASSERT_EQ(bound.seed, run.seed);
    EXPECT_LE(run.allocation, bound.allocation) << what << ": " << run.policy;
    EXPECT_LE(run.allocation_at_capacity, bound.allocation_at_capacity)
        << what << ": " << run.policy;
    const auto& best = foreseen.at(run.seed);
    EXPECT_LE(run.allocation, best.allocation) << what << ": " << run.policy;
    EXPECT_LE(run.allocation_at_capacity, best.allocation_at_capacity)
        << what << ": " << run.policy;
  }
}

TEST(FullLoad, NobodyIsAboveTheClairvoyantNorThatAboveTheBound) {
  for (const uint64_t seed : {1, 2, 3})
    for (const auto& change : kChanges) {
      auto trace = generate_pods(seed, 1 + 30 * (seed - 1), 400);
      SeededRandom random(seed);
      change.apply(trace, random);
      nobody_is_above(trace, change.name);
    }
}

TEST(FullLoad, PodsThatFitNowhereAreAboveNobody) {
  auto trace = generate_pods(5, 10, 100);
  for (auto& pod : trace.pods) pod.request.models = 0;
  const auto load = run_full_load(trace, {.policies = {"fgd", "clairvoyant"}, .seeds = 1}).value();
  for (const auto& run : load.runs) EXPECT_EQ(run.allocation, 0) << run.policy;
  EXPECT_EQ(load.bounds[0].allocation, 0);
}

TEST(FullLoad, TheClairvoyantNeedsNobodyBeside) {
  const auto trace = generate_pods(2, 30, 400);
  const auto load = run_full_load(trace, {.policies = {"clairvoyant"}, .seeds = 1}).value();
  ASSERT_EQ(load.runs.size(), 1U);
  const auto& run = load.runs[0];
  EXPECT_GT(run.allocation, 0.99);
  EXPECT_EQ(run.given, run.allocation);
  EXPECT_NEAR(1 - run.allocation, run.fragmentation, 0.01);
}

TEST(FullLoad, AnUnknownPolicyNamesAllOfThem) {
  const auto load = run_full_load(generate_pods(2, 3, 40), {.policies = {"fastest"}});
  ASSERT_FALSE(load);
  EXPECT_EQ(load.error().code, ErrorCode::kNotFound);
  EXPECT_NE(load.error().message.find("share, clairvoyant"), std::string::npos)
      << load.error().message;
}

TEST(FullLoad, TheReportHasBoundsOfEachSeedAndTheirMean) {
  const auto trace = generate_pods(2, 10, 100);
  const auto load = run_full_load(trace, {.policies = {"best-fit"}, .seeds = 2}).value();
  const auto value = full_load_json(load);
  ASSERT_EQ(value["bound_runs"].size(), 2U);
  ASSERT_EQ(value["bounds"].size(), 1U);
  const auto& bound = value["bounds"][0];
  EXPECT_EQ(bound["policy"], "bound");
  EXPECT_NEAR(bound["allocation_at_capacity"],
              (load.bounds[0].allocation_at_capacity + load.bounds[1].allocation_at_capacity) / 2,
              1e-12);
  EXPECT_LE(bound["allocation_least"], bound["allocation"]);
}

TEST(FullLoad, ReachesThePublishedAllocationOnThePublishedTrace) {
  const auto pods = kTraces / "openb_pod_list_default.csv";
  if (!std::filesystem::exists(pods)) GTEST_SKIP() << pods << " is not here";
  const auto trace = read_pods(pods, kTraces / "openb_node_list_gpu_node.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const auto means = allocation(*trace, 3, &FullLoadRun::allocation_at_capacity);
  EXPECT_NEAR(means.at("fgd"), 0.952, 0.004);
  EXPECT_GE(means.at("share"), 0.952);
  const auto load = run_full_load(*trace, {.policies = {"clairvoyant"}, .seeds = 1}).value();
  EXPECT_GE(load.runs[0].allocation_at_capacity, 0.962);
  EXPECT_LE(load.bounds[0].allocation_at_capacity, 0.972);
}

}  // namespace
}  // namespace tierpilot::sharing
