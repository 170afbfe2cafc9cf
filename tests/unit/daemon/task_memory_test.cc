#include "daemon/agent/paging/task_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {

const std::vector<PagingTier> kTiers{{.name = "node0-1", .nodes = {0, 1}},
                                     {.name = "node4", .nodes = {4}},
                                     {.name = "node2", .nodes = {2}}};
const Result<std::string> kLibrary = std::string("/usr/lib/libmemtier.so.0");

TaskMemory plan(const char* wish, const std::vector<PagingTier>& tiers = kTiers,
                const Result<std::string>& library = kLibrary, const Environment& env = {}) {
  return plan_task_memory(*parse_memory_wish(wish), tiers, library, env);
}

TEST(TaskMemory, WithoutAWishNothingIsDoneOrSaid) {
  const auto memory = plan("");
  EXPECT_TRUE(memory.nodes.empty() && memory.env.empty() && memory.outcome.empty());
}

TEST(TaskMemory, FastAndSlowPreferTheOuterTiers) {
  EXPECT_EQ(plan("fast").nodes, (std::vector{0, 1}));
  EXPECT_EQ(plan("slow").nodes, std::vector{2});
  EXPECT_FALSE(plan("slow").interleave);
  EXPECT_NE(plan("slow").outcome.find("NUMA node 2"), std::string::npos);
}

TEST(TaskMemory, EqualWeightsAreInterleavedByTheKernelOverAsManyNodesOfEach) {
  const auto memory = plan("interleave:2,2");
  EXPECT_TRUE(memory.interleave);
  EXPECT_EQ(memory.nodes, (std::vector{0, 2}));
  EXPECT_TRUE(memory.env.empty());
}

TEST(TaskMemory, OtherWeightsSplitTheHeap) {
  const auto memory = plan("interleave:3,1");
  EXPECT_FALSE(memory.interleave);
  EXPECT_NE(memory.outcome.find("only the heap 3:1"), std::string::npos) << memory.outcome;
  EXPECT_EQ(memory.env, plan("heap:3,1").env);
}

TEST(TaskMemory, TheHeapIsSplitByMemkind) {
  const auto memory = plan("heap:1,4");
  const Environment env{
      {"LD_PRELOAD", "/usr/lib/libmemtier.so.0"},
      {"MEMKIND_DAX_KMEM_NODES", "2"},
      {"MEMKIND_MEM_TIERS", "KIND:DRAM,RATIO:1;KIND:KMEM_DAX,RATIO:4;POLICY:STATIC_RATIO"}};
  EXPECT_EQ(memory.env, env);
  EXPECT_EQ(memory.nodes, (std::vector{0, 1})) << "the DRAM kind follows the process's policy";
  EXPECT_EQ(plan("heap:1,1", kTiers, kLibrary, {{"LD_PRELOAD", "a.so"}}).env.at(0).second,
            "/usr/lib/libmemtier.so.0:a.so");
}

TEST(TaskMemory, SaysWhyAWishCameToNothing) {
  for (const char* wish : {"fast", "slow", "interleave:1,1", "heap:1,1"}) {
    const auto memory = plan(wish, {kTiers[0]});
    EXPECT_TRUE(memory.nodes.empty() && memory.env.empty());
    EXPECT_EQ(memory.outcome, "no effect: this node has one memory tier");
  }
  const auto memory = plan("heap:1,1", kTiers, fail(ErrorCode::kNotFound, "no library"));
  EXPECT_TRUE(memory.nodes.empty() && memory.env.empty());
  EXPECT_EQ(memory.outcome, "no effect: no library");
}

TEST(TaskMemory, FindsTheLibraryOrNamesItsPackage) {
  ScratchDirectory root;
  const Sysroot sysroot(root.path());
  EXPECT_NE(find_heap_library(sysroot).error().message.find("libmemkind0"), std::string::npos);
  std::filesystem::create_directories(sysroot.resolve("/usr/lib64"));
  std::ofstream(sysroot.resolve("/usr/lib64/libmemtier.so.0")) << "";
  EXPECT_EQ(find_heap_library(sysroot), "/usr/lib64/libmemtier.so.0");
}

}  // namespace
}  // namespace tierpilot::agent
