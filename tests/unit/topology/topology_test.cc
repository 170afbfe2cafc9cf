#include "daemon/topology/topology.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "daemon/topology/json.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/topology/sysroots.h"

namespace tierpilot {
namespace {

using Ids = std::vector<int>;

TEST(Topology, OneNodeTakesItsMemoryFromTheWholeMachine) {
  const auto topology = discover_fake("one_node");
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_EQ(topology->cpus_online, (Ids{0, 1}));
  ASSERT_EQ(topology->nodes.size(), 1U);
  EXPECT_TRUE(topology->nodes[0].has_cpu());
  EXPECT_EQ(topology->nodes[0].memory_total_bytes, 24 * kGiB);
  EXPECT_EQ(topology->nodes[0].memory_free_bytes, 23 * kGiB);
  EXPECT_FALSE(topology->nodes[0].hmat);
  ASSERT_EQ(topology->kernel_tiers.size(), 1U);
  EXPECT_EQ(topology->kernel_tiers[0].id, 4);
  EXPECT_TRUE(topology->warnings.empty()) << topology->warnings[0];
}

TEST(Topology, TwoNodesWithTheFirmwaresFigures) {
  const auto topology = discover_fake("two_nodes_hmat");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->nodes.size(), 2U);
  EXPECT_EQ(topology->nodes[1].cpus, (Ids{4, 5, 6, 7}));
  EXPECT_EQ(topology->nodes[0].distance_to, (std::map<int, int>{{0, 10}, {1, 21}}));
  EXPECT_EQ(topology->nodes[0].memory_total_bytes, 64 * kGiB);
  const auto& hmat = topology->nodes[1].hmat;
  ASSERT_TRUE(hmat);
  EXPECT_EQ(hmat->initiator_nodes, Ids{1});
  EXPECT_EQ(hmat->read_latency_ns, 82);
  EXPECT_EQ(hmat->write_latency_ns, std::nullopt) << "0 means: not given";
  EXPECT_EQ(hmat->read_bandwidth_mb_per_s, 118000);
}

TEST(Topology, GapsInNodeIdsAndMemorylessNodes) {
  const auto topology = discover_fake("gap_cxl");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->nodes.size(), 3U);
  EXPECT_EQ(topology->node(2), nullptr);
  const auto* memoryless = topology->node(1);
  ASSERT_NE(memoryless, nullptr);
  EXPECT_TRUE(memoryless->has_cpu());
  EXPECT_FALSE(memoryless->has_memory());
  const auto* far = topology->node(3);
  ASSERT_NE(far, nullptr);
  EXPECT_FALSE(far->has_cpu());
  EXPECT_EQ(far->distance_to, (std::map<int, int>{{0, 40}, {1, 50}, {3, 10}}));
  EXPECT_EQ(far->hmat->initiator_nodes, Ids{0});
}

TEST(Topology, CxlRegionsKnowTheirNodesAndDaxDevicesTheirRegion) {
  const auto topology = discover_fake("gap_cxl");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->cxl_memdevs.size(), 2U);
  EXPECT_EQ(topology->cxl_memdevs[1].ram_bytes, 8 * kGiB);
  EXPECT_EQ(topology->cxl_memdevs[1].numa_node, 0);
  ASSERT_EQ(topology->cxl_regions.size(), 1U);
  const auto& region = topology->cxl_regions[0];
  EXPECT_EQ(region.mode, "ram");
  EXPECT_EQ(region.size_bytes, 16 * kGiB);
  EXPECT_EQ(region.targets, (std::vector<std::string>{"decoder2.0", "decoder3.0"}));
  EXPECT_EQ(region.nodes, Ids{3});
  ASSERT_EQ(topology->cxl_decoders.size(), 1U);
  ASSERT_EQ(topology->dax_devices.size(), 1U);
  EXPECT_EQ(topology->dax_devices[0].driver, "kmem");
  EXPECT_EQ(topology->dax_devices[0].source, DaxSource::kCxl);
  EXPECT_EQ(topology->dax_devices[0].target_node, 3);
  ASSERT_EQ(topology->kernel_tiers.size(), 2U);
  EXPECT_EQ(topology->kernel_tiers[1].nodes, Ids{3});
}

TEST(Topology, AKernelWithoutNumaIsOneNode) {
  const auto topology = discover_fake("no_numa");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->nodes.size(), 1U);
  EXPECT_EQ(topology->nodes[0].id, 0);
  EXPECT_EQ(topology->nodes[0].memory_total_bytes, 8 * kGiB);
  EXPECT_FALSE(topology->kernel_tiers_unavailable.empty());
}

TEST(Topology, NodesThatCannotBeReadAreNotTheWholeMachine) {
  const ScratchDirectory scratch;
  const auto copy = std::filesystem::copy_options::recursive;
  std::filesystem::copy(SYSROOTS "/no_numa", scratch.path(), copy);
  std::filesystem::create_directories(scratch.path() + "/sys/devices/system/node/online");
  const auto topology = discover_topology(Sysroot(scratch.path()), {.nvml_library = ""});
  ASSERT_TRUE(topology);
  EXPECT_TRUE(topology->nodes.empty());
  EXPECT_EQ(topology->unread, std::vector<std::string>{"/sys/devices/system/node/online"});
  ASSERT_EQ(topology->warnings.size(), 1U);
  EXPECT_NE(topology->warnings[0].find("/sys/devices/system/node/online"), std::string::npos);
}

TEST(Topology, MalformedFilesAreWarnedOfAndTheirFactsLeftOut) {
  const auto topology = discover_fake("malformed");
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->nodes.size(), 2U);
  for (const auto& node : topology->nodes) {
    EXPECT_EQ(node.memory_total_bytes, std::nullopt);
    EXPECT_TRUE(node.distance_to.empty());
  }
  EXPECT_EQ(topology->nodes[0].hmat->read_latency_ns, std::nullopt);
  ASSERT_EQ(topology->kernel_tiers.size(), 1U);
  EXPECT_TRUE(topology->kernel_tiers[0].nodes.empty());
  EXPECT_EQ(topology->dax_devices[0].target_node, std::nullopt);
  EXPECT_GE(topology->warnings.size(), 8U);
  for (const auto& warning : topology->warnings)
    EXPECT_NE(warning.find("/sys/"), std::string::npos) << "names its file: " << warning;
}

TEST(Topology, AnEmptyRootIsAnErrorThatNamesIt) {
  const auto topology = discover_topology(Sysroot("/nonexistent"), {.nvml_library = ""});
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(topology.error().message.find("/nonexistent"), std::string::npos);
}

TEST(Topology, TheTreeShowsEveryNodeAndDevice) {
  const auto topology = discover_fake("gap_cxl");
  ASSERT_TRUE(topology);
  const auto tree = format_tree(*topology);
  for (const char* text :
       {"8 CPUs online (0-7), 3 NUMA nodes", "node 1: CPUs 4-7, no memory",
        "node 3: no CPUs, 16.0 GiB", "50 to node 1", "read 250 ns, 30000 MB/s", "tier 22: nodes 3",
        "region0: 16.0 GiB ram over decoder2.0, decoder3.0",
        "dax0.0: 16.0 GiB, driver kmem, node 3", "GPUs: unavailable: not looked for"})
    EXPECT_NE(tree.find(text), std::string::npos) << text << "\nin\n" << tree;
}

TEST(Topology, JsonSaysNullForWhatIsNotKnown) {
  const auto json = topology_to_json(*discover_fake("malformed"));
  EXPECT_TRUE(json["nodes"][0]["memory_total_bytes"].is_null());
  EXPECT_TRUE(json["gpus"].is_null());
  EXPECT_EQ(json["gpus_unavailable"], "not looked for");
  EXPECT_EQ(topology_to_json(*discover_fake("gap_cxl"))["nodes"][2]["distance_to"]["1"], 50);
}

TEST(Topology, TheRealMachineIsDiscovered) {
  const auto topology = discover_topology(Sysroot());
  ASSERT_TRUE(topology) << topology.error().message;
  EXPECT_FALSE(topology->cpus_online.empty());
  EXPECT_FALSE(topology->nodes.empty());
}

}  // namespace
}  // namespace tierpilot
