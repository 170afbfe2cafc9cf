// Real ENOSPC: tiers smaller than their budgets, on tiny tmpfs mounts of a private mount namespace.
#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

class PoolFullDisk : public PoolTest {
 protected:
  void SetUp() override {
    PoolTest::SetUp();
    if (IsSkipped()) return;
    // The process stays in the namespace; threads made from here on are in it too.
    static const bool separate = ::unshare(CLONE_NEWNS) == 0 &&
                                 ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!separate) GTEST_SKIP() << "cannot make a private mount namespace: this needs root";
    mount_tmpfs(fast_dir, 4 * kMiB);
    mount_tmpfs(slow_dir, 4 * kMiB);
    options.fast_budget_bytes = 64 * kMiB;
    options.slow_budget_bytes = 64 * kMiB;
  }
  void TearDown() override {
    pool.reset();
    for (const auto& dir : mounted) ::umount2(dir.c_str(), MNT_DETACH);
    PoolTest::TearDown();
  }
  void mount_tmpfs(const std::string& dir, uint64_t bytes) {
    if (::mount("tmpfs", dir.c_str(), "tmpfs", 0, ("size=" + std::to_string(bytes)).c_str()) != 0)
      GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
    mounted.push_back(dir);
  }
  static void expect_full(const Error& error, const std::string& dir) {
    EXPECT_EQ(error.code, ErrorCode::kExhausted) << error.message;
    EXPECT_NE(error.message.find(dir), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("bytes are free"), std::string::npos) << error.message;
  }
  std::vector<std::string> mounted;
};

TEST_F(PoolFullDisk, CreateLeavesNothing) {
  open();
  ASSERT_TRUE(create("a", RandomFill{2 * kMiB, 1}));
  const auto made = create("b", RandomFill{3 * kMiB, 1});
  ASSERT_FALSE(made);
  expect_full(made.error(), slow_dir);
  expect_consistent();
  EXPECT_TRUE(create("b", RandomFill{kMiB, 1})) << "the name is free";
}

TEST_F(PoolFullDisk, FetchAndPromotionLeaveNothing) {
  open();
  ASSERT_TRUE(create("a", RandomFill{3 * kMiB, 1}));
  ASSERT_TRUE(serve("t1", {item("a", 3 * kMiB)}));
  remote->put("far", "f", 1, content(2 * kMiB, 'f'));
  const auto served = serve("t2", {remote_item("f", 2 * kMiB)});
  ASSERT_FALSE(served);
  expect_full(served.error(), fast_dir);
  EXPECT_EQ(remote->reads["far"], 0) << "found out before a byte was fetched";
  ASSERT_TRUE(finish("t1"));
  expect_consistent();
}

TEST_F(PoolFullDisk, FailedEvictionNeverLosesTheLastCopy) {
  options.fast_budget_bytes = 4 * kMiB - 64 * kKiB;
  open();
  const auto data = content(2 * kMiB, 'f');
  remote->put("far", "f", 1, data);
  use(remote_item("f", 2 * kMiB));
  ASSERT_TRUE(create("a", RandomFill{3 * kMiB, 1}));
  const auto served = serve("t", {item("a", 3 * kMiB)});
  ASSERT_FALSE(served);
  expect_full(served.error(), slow_dir);
  EXPECT_EQ(placed(replica("f")), (ReplicaChange{"f", 1, 2 * kMiB, true, false, false}));
  expect_consistent();
  const auto again = serve("t", {item("f", 2 * kMiB)});
  ASSERT_TRUE(again);
  EXPECT_EQ(read_file(again->items[0].path), data);
  ASSERT_TRUE(finish("t"));
  ASSERT_TRUE(drop("a"));
  ASSERT_TRUE(create("b", RandomFill{kMiB, 1}));
  use(item("b", kMiB));
  expect_consistent();
}

TEST_F(PoolFullDisk, CleanCopiesStillLeaveWhenDirtyOnesCannot) {
  options.fast_budget_bytes = 4 * kMiB - 64 * kKiB;
  open();
  remote->put("far", "f", 1, content(kMiB, 'f'));
  use(remote_item("f", kMiB));  // the oldest, dirty
  ASSERT_TRUE(create("clean", RandomFill{2 * kMiB, 1}));
  use(item("clean", 2 * kMiB));
  ASSERT_TRUE(create("a", RandomFill{3 * kMiB / 2, 1}));
  const auto served = serve("t", {item("a", 3 * kMiB / 2)});
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_TRUE(in_fast("f"));
  EXPECT_FALSE(in_fast("clean"));
}

TEST_F(PoolFullDisk, FailedCommitKeepsTheOldVersion) {
  open();
  ASSERT_TRUE(create("w", RandomFill{5 * kMiB / 2, 1}));
  const auto writer = serve("t", {write_item("w", 5 * kMiB / 2)});
  ASSERT_TRUE(writer);
  const auto result = finish("t");
  ASSERT_FALSE(result) << "two versions do not fit side by side";
  expect_full(result.error(), slow_dir);
  EXPECT_TRUE(in_slow("w", 1));
  expect_consistent();
}

}  // namespace
}  // namespace tierpilot
