#include "daemon/probe/memory/transfer.h"

#include <gtest/gtest.h>
#include <numa.h>

#include "base/bytes.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot {
namespace {

TierSpec node(int id) {
  return {.name = "node", .kind = "dram", .numa_node = id};
}
TierSpec directory(const std::string& path) {
  return {.name = "directory0", .kind = "directory", .directory = path};
}

void expect_both_ways(const TierSpec& fast, const TierSpec& slow, size_t batch_bytes = 0) {
  auto transfer = make_transfer(fast, slow, {.bytes = 4 * kMiB, .batch_bytes = batch_bytes});
  ASSERT_TRUE(transfer) << transfer.error().message;
  for (int round = 0; round < 2; ++round) {
    const auto evicted = (*transfer)->evict();
    ASSERT_TRUE(evicted) << evicted.error().message;
    EXPECT_GT(evicted->bytes_per_s, 0);
    EXPECT_GT(evicted->first_page_ns, 0);
    const auto promoted = (*transfer)->promote();
    ASSERT_TRUE(promoted) << promoted.error().message;
    EXPECT_GT(promoted->bytes_per_s, 0);
    EXPECT_GT(promoted->first_page_ns, 0);
    const bool files = fast.is_directory() || slow.is_directory();
    EXPECT_EQ(evicted->start_ns.has_value(), files);
    EXPECT_EQ(promoted->start_ns.has_value(), files);
    EXPECT_GE(promoted->start_ns.value_or(0), 0);
  }
  EXPECT_FALSE((*transfer)->method().empty());
}

TEST(Transfer, BetweenANodeAndADirectory) {
  const ScratchDirectory scratch;
  expect_both_ways(node(0), directory(scratch.path()));
  expect_both_ways(directory(scratch.path()), node(0));
  expect_both_ways(node(0), directory(scratch.path()), 4096);
  EXPECT_TRUE(scratch.empty());
}

TEST(Transfer, BetweenTwoDirectories) {
  const ScratchDirectory one, two;
  expect_both_ways(directory(one.path()), directory(two.path()));
}

TEST(Transfer, BetweenTwoNodesMovesPages) {
  if (numa_available() < 0 || numa_num_configured_nodes() < 2)
    GTEST_SKIP() << "this machine has one NUMA node";
  expect_both_ways(node(0), node(numa_max_node()));
}

TEST(Transfer, ToANodeThatDoesNotExistIsAReason) {
  if (numa_available() < 0) GTEST_SKIP() << "no NUMA policies on this kernel";
  auto transfer = make_transfer(node(0), node(numa_max_node() + 1), {.bytes = 4 * kMiB});
  ASSERT_TRUE(transfer);
  const auto evicted = (*transfer)->evict();
  ASSERT_FALSE(evicted);
  EXPECT_NE(evicted.error().message.find("move_pages"), std::string::npos);
}

TEST(Transfer, ToADirectoryThatIsGoneNamesIt) {
  const auto transfer = make_transfer(node(0), directory("/nonexistent/tier"), {.bytes = 4 * kMiB});
  ASSERT_FALSE(transfer);
  EXPECT_NE(transfer.error().message.find("/nonexistent/tier"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot
