#include "daemon/probe/active/classes.h"

#include <gtest/gtest.h>

#include "daemon/probe/active/disagreement.h"

namespace tierpilot {
namespace {

TierMeasurement node(int id, double latency_ns, double read_gb_per_s, double spread = 0.02) {
  TierMeasurement tier;
  tier.tier = {.name = "node" + std::to_string(id), .kind = "dram", .numa_node = id};
  tier.initiator_node = 0;
  tier.latency_p50_ns.value = latency_ns;
  tier.read_gb_per_s.value = read_gb_per_s;
  tier.evidence["latency_ns"] = {spread, 3};
  tier.surroundings = {.cpus = 4, .others_cpu_share = 0.0};
  return tier;
}

std::vector<int> classes(std::vector<TierMeasurement> tiers) {
  assign_classes(tiers);
  std::vector<int> found;
  for (const auto& tier : tiers) found.push_back(tier.tier_class);
  return found;
}

Topology machine(std::vector<KernelMemoryTier> kernel_tiers) {
  Topology topology;
  for (const int id : {0, 1, 2}) topology.nodes.push_back({.id = id});
  topology.kernel_tiers = std::move(kernel_tiers);
  return topology;
}

void promise(Topology& topology, int node, int64_t latency_ns, int64_t read_mb_per_s,
             std::vector<int> initiators = {0}) {
  topology.nodes[static_cast<size_t>(node)].hmat =
      HmatFigures{.initiator_nodes = std::move(initiators),
                  .read_latency_ns = latency_ns,
                  .read_bandwidth_mb_per_s = read_mb_per_s};
}

std::vector<std::string> told(const Topology& topology, std::vector<TierMeasurement> tiers) {
  assign_classes(tiers);
  return disagreements(topology, tiers);
}

#define EXPECT_TOLD(sentences, text)                             \
  do {                                                           \
    const auto list = sentences;                                 \
    ASSERT_EQ(list.size(), 1U) << testing::PrintToString(list);  \
    EXPECT_NE(list[0].find(text), std::string::npos) << list[0]; \
  } while (false)

TEST(Classes, SameLatencyAndBandwidthIsOneClassWhateverTheNodeIds) {
  EXPECT_EQ(classes({node(2, 310, 8), node(0, 95, 20), node(1, 100, 21)}),
            (std::vector<int>{1, 0, 0}));
}

TEST(Classes, BandwidthTellsTiersOfOneLatencyApart) {
  EXPECT_EQ(classes({node(0, 100, 10), node(1, 101, 80)}), (std::vector<int>{1, 0}));
}

TEST(Classes, WhatWasNotMeasuredHasNone) {
  auto dark = node(1, 0, 0);
  dark.latency_p50_ns.value.reset();
  EXPECT_EQ(classes({node(0, 100, 10), dark}), (std::vector<int>{0, -1}));
  EXPECT_TRUE(classes({}).empty());
}

TEST(Disagreement, NoneWhereTheKernelMeasuresUp) {
  EXPECT_TRUE(
      told(machine({{4, {0, 1}}, {22, {2}}}), {node(0, 95, 20), node(1, 97, 20), node(2, 310, 8)})
          .empty());
}

TEST(Disagreement, EqualsThatAreNot) {
  EXPECT_TOLD(told(machine({{4, {0, 2}}}), {node(0, 95, 20), node(2, 310, 8)}),
              "the kernel holds node0 (node 0, 95 ns) and node2 (node 2, 310 ns) for equals");
}

TEST(Disagreement, AnOrderThatIsTheOtherWayRound) {
  EXPECT_TOLD(told(machine({{4, {0}}, {22, {2}}}), {node(0, 400, 5), node(2, 100, 20)}),
              "the kernel ranks node0 (node 0, 400 ns) above node2 (node 2, 100 ns)");
}

TEST(Disagreement, RankedApartButAlike) {
  EXPECT_TOLD(told(machine({{4, {0}}, {22, {2}}}), {node(0, 100, 20), node(2, 102, 20)}),
              "measure as one class");
}

TEST(Disagreement, HmatLatencyThatIsOff) {
  auto topology = machine({});
  promise(topology, 0, 90, 40'000);
  EXPECT_TRUE(told(topology, {node(0, 95, 20)}).empty());
  promise(topology, 0, 10, 40'000);
  EXPECT_TOLD(told(topology, {node(0, 95, 20)}), "HMAT promises 10 ns for node0");
}

TEST(Disagreement, HmatBandwidthIsOnlyHeldAgainstItWhenMoreWasMeasured) {
  auto topology = machine({});
  promise(topology, 0, 95, 10'000);
  EXPECT_TOLD(told(topology, {node(0, 95, 20)}), "10.0 GB/s of reads, but 20.0 were measured");
  EXPECT_TRUE(told(topology, {node(0, 95, 2)}).empty());
}

TEST(Disagreement, HmatOrderThatIsTheOtherWayRound) {
  auto topology = machine({});
  promise(topology, 0, 120, 40'000);
  promise(topology, 2, 110, 40'000);
  EXPECT_TOLD(told(topology, {node(0, 100, 20), node(2, 130, 20)}),
              "HMAT promises node2 (node 2, 130 ns) to answer before node0");
}

TEST(Disagreement, HmatOfOtherInitiatorsSaysNothing) {
  auto topology = machine({});
  promise(topology, 1, 10, 40'000, {1});
  EXPECT_TRUE(told(topology, {node(1, 95, 20)}).empty());
}

TEST(Disagreement, NoisyFiguresAccuseNobodyAndThatIsSaid) {
  EXPECT_TOLD(told(machine({{4, {0, 2}}}), {node(0, 95, 20), node(2, 310, 8, 0.9)}),
              "node2 (node 2, 310 ns) is not compared");
}

}  // namespace
}  // namespace tierpilot
