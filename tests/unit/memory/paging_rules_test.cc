#include "daemon/memory/paging/rules.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_directory.h"

namespace tierpilot {
namespace {

const ProcessIdentity kProcess{.pid = 7,
                               .name = "postgres",
                               .cgroup = "/system.slice/db.service/worker",
                               .task = "sort",
                               .datasets = {"genes", "map"}};

TEST(PagingMatch, EveryConditionMustHold) {
  EXPECT_TRUE(PagingMatch{}.holds(kProcess));
  EXPECT_TRUE((PagingMatch{.pid = 7, .name = "post*", .task = "s?rt"}.holds(kProcess)));
  EXPECT_FALSE((PagingMatch{.pid = 8, .name = "post*"}.holds(kProcess)));
  EXPECT_FALSE((PagingMatch{.name = "post"}.holds(kProcess)));
  EXPECT_FALSE((PagingMatch{.name = "post*", .task = "other"}.holds(kProcess)));
}

TEST(PagingMatch, ACgroupHoldsForAllBelowIt) {
  EXPECT_TRUE((PagingMatch{.cgroup = "/system.slice/db.service"}.holds(kProcess)));
  EXPECT_TRUE((PagingMatch{.cgroup = "/*/db.service"}.holds(kProcess)));
  EXPECT_FALSE((PagingMatch{.cgroup = "/system.slice/db"}.holds(kProcess)));
}

TEST(PagingMatch, AnyDatasetWillDo) {
  EXPECT_TRUE(PagingMatch{.dataset = "ma*"}.holds(kProcess));
  EXPECT_FALSE(PagingMatch{.dataset = "x*"}.holds(kProcess));
  EXPECT_FALSE(PagingMatch{.dataset = "*"}.holds({.pid = 1, .name = {}, .cgroup = {}, .task = {}}));
}

TEST(PagingRules, TheFirstThatHoldsCounts) {
  const std::vector<PagingRule> rules{{.match = {.name = "mysql*"}, .group = {.name = "a"}},
                                      {.match = {.task = "sort"}, .group = {.name = "b"}},
                                      {.match = {.name = "post*"}, .group = {.name = "c"}}};
  EXPECT_EQ(find_rule(rules, kProcess), &rules[1]);
  EXPECT_EQ(find_rule({rules[0]}, kProcess), nullptr);
}

TEST(PagingTiers, AreFoundByRankOrNode) {
  const std::vector<PagingTier> tiers{
      {.name = "a", .nodes = {0, 1}}, {.name = "b", .nodes = {3}}, {.name = "c", .nodes = {2, 10}}};
  EXPECT_EQ(find_tier(tiers, "fast"), 0u);
  EXPECT_EQ(find_tier(tiers, "slow"), 2u);
  EXPECT_EQ(find_tier(tiers, "node1"), 0u);
  EXPECT_EQ(find_tier(tiers, "node10"), 2u);
  EXPECT_EQ(find_tier(tiers, "node4").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_tier({}, "fast").error().code, ErrorCode::kNotFound);
  for (const char* name : {"", "node", "node-1", "node1x", "medium", "1", "node99999999999"})
    EXPECT_EQ(find_tier(tiers, name).error().code, ErrorCode::kInvalid) << name;
}

TEST(ProcessIdentity, IsReadFromProc) {
  ScratchDirectory root;
  const Sysroot sysroot(root.path());
  const auto folder = sysroot.resolve("/proc/7");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "comm") << "postgres\n";
  std::ofstream(folder / "cgroup") << "5:cpu:/old\n0::/system.slice/db.service\n";
  const auto identity = identify_process(sysroot, 7);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->name, "postgres");
  EXPECT_EQ(identity->cgroup, "/system.slice/db.service");
  EXPECT_EQ(identify_process(sysroot, 8).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tierpilot
