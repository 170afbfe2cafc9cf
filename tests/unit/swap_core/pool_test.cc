// Tiers, their room, and what happens where one fails.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "swap/host_pool.h"

namespace tierpilot::swap {
namespace {

std::vector<std::byte> pattern(int64_t bytes, int seed) {
  std::vector<std::byte> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(i * 31 + i / 977 + seed);
  return data;
}

std::vector<MeasuredTier> tiers(std::string_view list) {
  auto opened = tiers_of(list);
  EXPECT_TRUE(opened) << opened.error().message;
  const auto device = processor();
  auto ranked = measured(std::move(*opened), *device);
  EXPECT_TRUE(ranked) << ranked.error().message;
  return std::move(*ranked);
}

std::shared_ptr<TierSet> set_of(std::string_view list) {
  return std::make_shared<TierSet>(tiers(list));
}

TEST(Extents, GivesRangesThatDoNotMeetAndJoinsThemAgain) {
  Extents extents(10 * Extents::kAlignment);
  const auto a = extents.take(1), b = extents.take(Extents::kAlignment + 1), c = extents.take(5000);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(*a, 0);
  EXPECT_EQ(*b, Extents::kAlignment);
  EXPECT_EQ(*c, 3 * Extents::kAlignment);
  EXPECT_FALSE(extents.take(6 * Extents::kAlignment));
  extents.give_back(*a, 1);
  extents.give_back(*c, 5000);
  EXPECT_FALSE(extents.take(9 * Extents::kAlignment));
  extents.give_back(*b, Extents::kAlignment + 1);
  EXPECT_EQ(extents.used_bytes(), 0);
  EXPECT_EQ(extents.take(10 * Extents::kAlignment), 0);
  EXPECT_EQ(extents.peak_bytes(), 10 * Extents::kAlignment);
}

TEST(Extents, OfNothingGiveNothing) {
  EXPECT_FALSE(Extents(0).take(1));
  EXPECT_FALSE(Extents(Extents::kAlignment - 1).take(1));
}

class TierKinds : public testing::TestWithParam<const char*> {};

TEST_P(TierKinds, GiveBackWhatTheyTookWhateverItsSize) {
  HostPool pool(set_of(GetParam()));
  const auto device = processor();
  const auto copier = device->copier();
  const int64_t sizes[] = {1, 511, 4096, 4097, Staging::kBytes, Staging::kBytes + 1, 9'000'001};
  std::vector<Block> blocks;
  for (const auto bytes : sizes) {
    auto block = pool.write(pattern(bytes, 1).data(), bytes, *copier);
    ASSERT_TRUE(block) << block.error().message;
    blocks.push_back(*block);
  }
  for (const auto& block : blocks) {
    std::vector<std::byte> got(static_cast<size_t>(block.bytes));
    ASSERT_TRUE(pool.read(block, got.data(), *copier));
    EXPECT_EQ(got, pattern(block.bytes, 1)) << block.bytes;
    pool.free(block);
  }
  EXPECT_EQ(pool.use().front().used_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(All, TierKinds,
                         testing::Values("memory=64MiB", "dir:/var/tmp=64MiB", "dir:/dev/shm=64MiB",
                                         "node0=64MiB"));

TEST(HostPool, SpillsToTheNextTierAndThenRefuses) {
  HostPool pool(set_of("memory=2MiB,dir:/var/tmp=2MiB"));
  const auto device = processor();
  const auto copier = device->copier();
  const auto data = pattern(1 << 20, 3);
  std::vector<size_t> went;
  for (int i = 0; i < 4; ++i) {
    const auto block = pool.write(data.data(), 1 << 20, *copier);
    ASSERT_TRUE(block);
    went.push_back(block->tier);
  }
  EXPECT_EQ(went, (std::vector<size_t>{0, 0, 1, 1}));
  const auto refused = pool.write(data.data(), 1 << 20, *copier);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
}

TEST(HostPool, GoesOnWithTheNextTierWhereOneCannotBeWritten) {
  HostPool pool(set_of("dir:/var/tmp=64MiB,memory=4MiB"));
  const bool directory_first = pool.tiers()[0].tier->kind() == "directory";
  // The file may not grow any more: as on a disk that is full.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{16 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  const auto device = processor();
  const auto copier = device->copier();
  const auto data = pattern(3 << 20, 5);
  std::vector<Block> blocks;
  std::vector<std::byte> got(data.size());
  for (int i = 0; i < 12; ++i)
    if (const auto block = pool.write(data.data(), 3 << 20, *copier)) blocks.push_back(*block);
  const auto full = pool.write(data.data(), 3 << 20, *copier);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("File too large"), std::string::npos)
      << "also later: " << full.error().message;
  EXPECT_GE(blocks.size(), 5U);
  EXPECT_LT(blocks.size(), 12U);
  for (const auto& block : blocks) {
    ASSERT_TRUE(pool.read(block, got.data(), *copier));
    EXPECT_EQ(got, data);
  }
  EXPECT_EQ(pool.use()[directory_first ? 0 : 1].errors, 1);
}

TEST(HostPool, SessionsThatWereGivenTheSameTiersHaveThemTogether) {
  const auto open = [] { return Result<std::vector<MeasuredTier>>(tiers("memory=3MiB")); };
  const auto device = processor();
  const auto copier = device->copier();
  auto first = std::make_unique<HostPool>(*tiers_of_process("memory=3MiB", open));
  HostPool second(*tiers_of_process("memory=3MiB", open));
  const auto one = pattern(1 << 20, 3), other = pattern(1 << 20, 4);
  const auto a = first->write(one.data(), 1 << 20, *copier);
  const auto b = second.write(other.data(), 1 << 20, *copier);
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(first->write(one.data(), 1 << 20, *copier));
  EXPECT_FALSE(second.write(other.data(), 1 << 20, *copier)) << "all of it is taken";
  std::vector<std::byte> got(1 << 20);
  ASSERT_TRUE(first->read(*a, got.data(), *copier));
  EXPECT_EQ(got, one);
  ASSERT_TRUE(second.read(*b, got.data(), *copier));
  EXPECT_EQ(got, other);
  EXPECT_EQ(second.use()[0].used_bytes, 1 << 20) << "its own";
  first->free(*a);
  EXPECT_TRUE(second.write(other.data(), 1 << 20, *copier));
}

TEST(HostPool, AChildOfAForkHasTiersOfItsOwn) {
  int opened = 0;
  const auto open = [&] {
    ++opened;
    return Result<std::vector<MeasuredTier>>(tiers("dir:/var/tmp=1MiB"));
  };
  const auto parents = *tiers_of_process("of a fork", open);
  const pid_t child = fork();
  if (child == 0) {
    const auto own = *tiers_of_process("of a fork", open);
    _exit(opened == 2 && own != parents ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Whoever forks and whoever opens must not wait for each other.
TEST(HostPool, TiersAreOpenedWhileOthersFork) {
  std::atomic<bool> ends = false;
  std::thread opener([&] {
    for (int i = 0; !ends; ++i) {
      const auto name = std::to_string(i % 3);
      (void)tiers_of_process(
          name, [] { return Result<std::vector<MeasuredTier>>(tiers("dir:/var/tmp=1MiB")); });
    }
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    ASSERT_GT(child, 0);
    waitpid(child, nullptr, 0);
  }
  ends = true;
  opener.join();
}

// Else its room would stay taken for as long as any of them lives.
TEST(Tiers, AChildOfAForkKeepsNoneOfTheirFiles) {
  const auto set = set_of("dir:/var/tmp=1MiB");
  const auto unnamed = [] {
    int files = 0;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      files += std::filesystem::read_symlink(file.path(), gone).native().starts_with("/var/tmp/#");
    }
    return files;
  };
  ASSERT_GE(unnamed(), 1);
  const pid_t child = fork();
  if (child == 0) _exit(unnamed());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Tiers, LeaveNoNameInTheirDirectory) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("tp-swap-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  {
    HostPool pool(set_of("dir:" + folder.string() + "=16MiB"));
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove(folder);
}

TEST(Tiers, OneThatTakesNothingSaysWhatToDo) {
  auto opened = tiers_of("dir:/var/tmp=64MiB");
  ASSERT_TRUE(opened) << opened.error().message;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &none);
  const auto device = processor();
  const auto found = measured(std::move(*opened), *device);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  ASSERT_FALSE(found);
  for (const auto* const words : {"dir:/var/tmp", "File too large", "name a folder on a disk"})
    EXPECT_NE(found.error().message.find(words), std::string::npos) << found.error().message;
}

// Writing beyond it would end the program by a signal.
TEST(Tiers, HaveNoMoreRoomThanAFileMayHave) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto capacity_with = [&](rlim_t most) {
    const rlimit limit{most, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto opened = tiers_of("dir:/var/tmp=64MiB");
    const auto found = opened ? measured(std::move(*opened), *processor())
                              : Result<std::vector<MeasuredTier>>(tl::unexpected(opened.error()));
    setrlimit(RLIMIT_FSIZE, &before);
    if (!found) {
      EXPECT_NE(found.error().message.find("ulimit -f"), std::string::npos);
    }
    return found ? found->front().tier->capacity_bytes() : 0;
  };
  EXPECT_EQ(capacity_with(1'000'000), 999'424) << "whole pages";
  EXPECT_EQ(capacity_with(1000), 0);
}

TEST(Tiers, AreRankedByWhatWasMeasured) {
  const auto ranked = tiers("dir:/var/tmp=64MiB,memory=64MiB");
  ASSERT_EQ(ranked.size(), 2U);
  const auto cost = [](const MeasuredTier& t) {
    return 1 / t.read_gb_per_s + 1 / t.write_gb_per_s;
  };
  EXPECT_LE(cost(ranked[0]), cost(ranked[1]));
  for (const auto& tier : ranked) EXPECT_GT(tier.latency_ns, 0);
}

TEST(Tiers, ListsThatAreWrongAreNamed) {
  for (const auto& [list, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "at least one"},
           {"memory", "NAME=SIZE"},
           {"memory=", "tier 'memory='"},
           {"memory=12parsecs", "12parsecs"},
           {"memory=1", "1MiB"},
           {"node=1GiB", "node0"},
           {"node-1=1GiB", "node0"},
           {"node1x=1GiB", "node0"},
           {"node99999999999=1GiB", "node0"},
           {"node4711=1GiB", "no NUMA node 4711"},
           {"dir:=1GiB", "dir:PATH"},
           {"dir:/nonexistent=1GiB", "No such file"},
           {"dir:/nonexistent=1GiB", "make that folder"},
           {"dir:/dev/null=1GiB", "name a folder"},
           {"dir:/proc=1GiB", "O_TMPFILE"},
           {"dir:/var/tmp=1MiB,dir:/var/tmp/=2MiB", "the same as 'dir:/var/tmp'"},
           {"memory=1MiB,memory=1MiB", "name it once"},
           {"memory=1MiB,,memory=1MiB", "tier ''"}}) {
    const auto opened = tiers_of(list);
    ASSERT_FALSE(opened) << list;
    EXPECT_NE(opened.error().message.find(words), std::string::npos)
        << list << ": " << opened.error().message;
  }
}

}  // namespace
}  // namespace tierpilot::swap
