// Who has which part of a node's tiers for swapping, and what its program is told.
#include "daemon/agent/tasks/swap_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "daemon/agent/calibration/swap_order.h"
#include "daemon/agent/tasks/whose_fault.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr AttemptId kFirst{1, 1}, kSecond{2, 1}, kThird{3, 1};

SwapTierWords tier(const std::string& words) {
  const auto tier = parse_swap_tier(words);
  EXPECT_TRUE(tier) << tier.error().message;
  return *tier;
}

// As the daemon makes its own folders before.
class SwapRoomTest : public testing::Test {
 protected:
  SwapRoom room(const std::string& node_tier = "node0=4MiB") {
    SwapRoom room({tier(node_tier), tier("dir:" + slow() + "=8MiB")}, "n1");
    for (const auto& folder : room.folders()) fs::create_directories(folder);
    return room;
  }
  std::string slow() const { return scratch_.path(); }
  std::string folder(AttemptId attempt) const {
    return slow() + "/tierpilot-n1/" + to_string(attempt);
  }

  ScratchDirectory scratch_;
};

TEST_F(SwapRoomTest, TheFastestIsFilledFirstAndAPartOfTheNextOne) {
  auto swap = room();
  const auto all = swap.take(kFirst, 6 * kMiB);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->tiers.size(), 2u);
  EXPECT_EQ(all->memory_bytes(), 4 * kMiB);
  EXPECT_THAT(all->folders(), ElementsAre(folder(kFirst)));
  const auto rest = swap.take(kSecond, 6 * kMiB);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(rest->memory_bytes(), 0u) << "the fast one is full";
  EXPECT_EQ(swap.given_bytes(), 12 * kMiB);
  EXPECT_EQ(swap.offered_bytes(), 12 * kMiB);
}

TEST_F(SwapRoomTest, TooLittleTakesNothingAndIsTheNodesFault) {
  auto swap = room();
  ASSERT_TRUE(swap.take(kFirst, 6 * kMiB));
  const auto none = swap.take(kSecond, 7 * kMiB);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(is_this_nodes(none.error())) << "it is tried elsewhere";
  EXPECT_THAT(none.error().message, HasSubstr("6.0 MiB is left"));
  EXPECT_EQ(swap.given_bytes(), 6 * kMiB);
  EXPECT_FALSE(fs::exists(folder(kSecond)));
  swap.give_back(kFirst);
  EXPECT_TRUE(swap.take(kSecond, 7 * kMiB));
}

TEST_F(SwapRoomTest, WhatIsGivenBackIsThereOnce) {
  auto swap = room();
  ASSERT_TRUE(swap.take(kFirst, 12 * kMiB));
  for (int times = 0; times < 3; ++times) {
    swap.give_back(kFirst);
    swap.remove_folders(kFirst);
    swap.give_back(kThird);  // it never had any
  }
  EXPECT_EQ(swap.given_bytes(), 0u);
  EXPECT_FALSE(swap.take(kSecond, 13 * kMiB));
  EXPECT_TRUE(swap.take(kSecond, 12 * kMiB));
}

TEST_F(SwapRoomTest, AFolderIsItsOwnersAloneAndGoesWithWhatIsInIt) {
  auto swap = room();
  ASSERT_TRUE(swap.take(kFirst, 6 * kMiB));
  struct stat info {};
  ASSERT_EQ(::stat(folder(kFirst).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  fs::create_directories(folder(kFirst) + "/deep/er");
  std::ofstream(folder(kFirst) + "/deep/er/file") << "left";
  swap.give_back(kFirst);
  swap.remove_folders(kFirst);
  EXPECT_FALSE(fs::exists(folder(kFirst)));
  EXPECT_TRUE(fs::exists(slow())) << "the operator's stays";
}

// Whoever asks for it is the daemon's event loop, which keeps the lease.
TEST_F(SwapRoomTest, NobodyWaitsUntilAllThatATaskLeftIsRemoved) {
  auto swap = room();
  ASSERT_TRUE(swap.take(kFirst, 6 * kMiB));
  const auto fill = [](const fs::path& folder) {
    fs::create_directories(folder);
    for (int i = 0; i < 5'000; ++i) std::ofstream(folder / std::to_string(i));
  };
  const auto seconds_of = [](const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const fs::path like_it = slow() + "/like-it";
  fill(like_it);
  fill(folder(kFirst));
  const double removal_s = seconds_of([&] { fs::remove_all(like_it); });
  swap.give_back(kFirst);
  EXPECT_LT(seconds_of([&] { swap.remove_folders(kFirst); }), removal_s / 4);
  EXPECT_FALSE(fs::exists(folder(kFirst))) << "its name is free";
  ASSERT_TRUE(swap.take(kFirst, 6 * kMiB));
  swap.remove_folders(kFirst);
  for (int tries = 0; tries < 3000 && !fs::is_empty(slow() + "/tierpilot-n1"); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(fs::is_empty(slow() + "/tierpilot-n1"));
}

TEST_F(SwapRoomTest, AFolderThatCannotBeMadeTakesNothing) {
  SwapRoom swap({tier("dir:" + slow() + "/gone=8MiB")}, "n1");
  const auto none = swap.take(kFirst, kMiB);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("gone/tierpilot-n1/1-1"));
  EXPECT_TRUE(is_this_nodes(none.error()));
  EXPECT_EQ(swap.given_bytes(), 0u);
}

TEST_F(SwapRoomTest, WhatWasThereBeforeStaysWhereAFolderCannotBeMade) {
  const auto other = slow() + "/other";
  SwapRoom swap({tier("dir:" + slow() + "=4MiB"), tier("dir:" + other + "=4MiB")}, "n1");
  for (const auto& folder : swap.folders()) fs::create_directories(folder);
  const auto there = other + "/tierpilot-n1/1-1";
  fs::create_directory(there);
  std::ofstream(there + "/file") << "somebody's";
  EXPECT_FALSE(swap.take(kFirst, 8 * kMiB));
  EXPECT_TRUE(fs::exists(there + "/file"));
  EXPECT_FALSE(fs::exists(folder(kFirst))) << "it was made for nothing";
  EXPECT_EQ(swap.given_bytes(), 0u);
}

TEST_F(SwapRoomTest, OfATaskInMemoryAloneThereIsNoFolder) {
  auto swap = room("memory=4MiB");
  const auto grant = swap.take(kFirst, 4 * kMiB);
  ASSERT_TRUE(grant);
  EXPECT_THAT(grant->folders(), IsEmpty());
  EXPECT_TRUE(fs::is_empty(slow() + "/tierpilot-n1"));
}

TEST_F(SwapRoomTest, TheProgramIsToldItsTiersAndItsMemory) {
  auto swap = room();
  const auto grant = swap.take(kFirst, 5 * kMiB);
  ASSERT_TRUE(grant);
  const auto tiers = "node0=4194304,dir:" + folder(kFirst) + "=1048576";
  Assignment task;
  EXPECT_THAT(swap_environment(task, *grant), ElementsAre(Pair("TIERPILOT_SWAP_TIERS", tiers)))
      << "no memory limit, no budget";
  task.memory_limit_bytes = 256 * kMiB;
  EXPECT_THAT(
      swap_environment(task, *grant),
      ElementsAre(Pair("TIERPILOT_SWAP_TIERS", tiers), Pair("TIERPILOT_SWAP_BUDGET", "268435456")));
  Assignment shared;
  shared.part = UnitPart{.milli = 500, .memory_bytes = 128 * kMiB};
  EXPECT_THAT(
      swap_environment(shared, *grant),
      ElementsAre(Pair("TIERPILOT_SWAP_TIERS", tiers), Pair("TIERPILOT_SWAP_BUDGET", "134217728")));
}

TEST_F(SwapRoomTest, TiersAreOrderedByMeasuredSpeedWhereAllWereMeasured) {
  const std::vector<SwapTierWords> said{tier("dir:" + slow() + "=8MiB"), tier("node1=1MiB"),
                                        tier("node0=2MiB")};
  const auto names = [](const std::vector<SwapTierWords>& tiers) {
    std::vector<std::string> names;
    for (const auto& tier : tiers) names.push_back(tier.name());
    return names;
  };
  const auto measured = [](TierSpec spec, double gb_per_s) {
    TierMeasurement tier;
    tier.tier = std::move(spec);
    tier.read_gb_per_s.value = tier.write_gb_per_s.value = gb_per_s;
    return tier;
  };
  TierSpec node0, node1, disk;
  node0.kind = node1.kind = "dram";
  node0.numa_node = 0;
  node1.numa_node = 1;
  disk.kind = "directory";
  disk.directory = slow();
  std::vector<TierMeasurement> all{measured(node0, 9), measured(node1, 5), measured(disk, 1)};
  EXPECT_THAT(names(fast_to_slow(said, all)), ElementsAre("node0", "node1", "dir:" + slow()));
  std::swap(all[0].tier, all[1].tier);
  EXPECT_THAT(names(fast_to_slow(said, all)), ElementsAre("node1", "node0", "dir:" + slow()));
  all.pop_back();
  EXPECT_THAT(names(fast_to_slow(said, all)), ElementsAre("dir:" + slow(), "node1", "node0"))
      << "as the file has them";
}

}  // namespace
}  // namespace tierpilot::agent
