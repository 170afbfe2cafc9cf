// Opening: refusals, restarts, and what an interrupted run left behind.
#include <numaif.h>
#include <sys/mman.h>

#include "base/unique_fd.h"
#include "daemon/memory/pool/tier_store.h"
#include "tests/unit/memory/pool_fixture.h"

#include <fcntl.h>

namespace tierpilot {
namespace {

class PoolOpen : public PoolTest {
 protected:
  void expect_refused(const PoolOptions& bad, ErrorCode code, const std::string& hint) {
    const auto opened = Pool::open(
        bad, remote, [](const auto& callback) { callback(); }, [](const auto&) {});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_NE(opened.error().message.find(hint), std::string::npos) << opened.error().message;
  }
  PoolOptions with(const std::function<void(PoolOptions&)>& change) {
    PoolOptions copy = options;
    change(copy);
    return copy;
  }
};

TEST_F(PoolOpen, RefusesWrongOptions) {
  const auto invalid = ErrorCode::kInvalid;
  expect_refused(with([](auto& o) { o.fast_dir = ""; }), invalid, "fast_dir");
  expect_refused(with([](auto& o) { o.slow_dir = ""; }), invalid, "slow_dir");
  expect_refused(with([](auto& o) { o.slow_kind = "tape"; }), invalid, "tape");
  expect_refused(with([](auto& o) { o.fast_budget_bytes = 0; }), invalid, "fast_budget_bytes");
  expect_refused(with([](auto& o) { o.slow_budget_bytes = UINT64_MAX; }), invalid,
                 "slow_budget_bytes");
  expect_refused(with([](auto& o) { o.workers = 0; }), invalid, "workers");
  expect_refused(with([](auto& o) { o.slow_numa_node = 0; }), invalid, "slow_kind");
  expect_refused(with([](auto& o) { o.fast_dir = "/proc/nope"; }), ErrorCode::kNotFound,
                 "/proc/nope");
}

TEST_F(PoolOpen, FastTierMustBeOnTmpfs) {
  if (on_tmpfs(slow_dir)) GTEST_SKIP() << slow_dir << " is on tmpfs itself";
  expect_refused(with([&](auto& o) { o.fast_dir = slow_dir + "/fast"; }), ErrorCode::kInvalid,
                 "/dev/shm");
}

TEST_F(PoolOpen, FolderInUseIsRefused) {
  expect_refused(with([&](auto& o) { o.slow_dir = fast_dir; }), ErrorCode::kConflict, fast_dir);
  open();
  expect_refused(options, ErrorCode::kConflict, "in use");
}

TEST_F(PoolOpen, NumaNodeThatIsNotThereIsRefused) {
  expect_refused(with([](auto& o) { o.fast_numa_node = 4000; }), ErrorCode::kInvalid, "4000");
}

TEST_F(PoolOpen, FilesAreBoundToTheNode) {
  options.fast_numa_node = 0;
  auto store = TierStore::open({.label = "fast tier",
                                .dir = fast_dir,
                                .in_memory = true,
                                .numa_node = 0,
                                .budget_bytes = 4 * kMiB});
  if (!store) GTEST_SKIP() << store.error().message;
  auto draft = store->draft(kMiB);
  ASSERT_TRUE(draft) << draft.error().message;
  void* map = ::mmap(nullptr, kMiB, PROT_READ, MAP_SHARED, draft->fd(), 0);
  ASSERT_NE(map, MAP_FAILED);
  int mode = -1;
  unsigned long nodes[16] = {};
  // The policy belongs to the file: a mapping made later shows it.
  EXPECT_EQ(::get_mempolicy(&mode, nodes, sizeof nodes * 8, map, MPOL_F_ADDR), 0);
  EXPECT_EQ(mode, MPOL_BIND);
  EXPECT_EQ(nodes[0], 1u);
  ::munmap(map, kMiB);
}

TEST_F(PoolOpen, RestartFindsReplicasAndLru) {
  open();
  ASSERT_TRUE(create("a", RandomFill{kMiB, 1}));
  ASSERT_TRUE(create("b", RandomFill{kMiB, 2}));
  use(item("b", kMiB));
  remote->put("far", "f", 1, content(kMiB, 'f'));
  use(remote_item("f", kMiB));
  const auto before = pool->replicas();
  const auto usage = pool->usage();
  open();
  EXPECT_EQ(pool->replicas(), before);
  EXPECT_EQ(pool->usage().fast_used_bytes, usage.fast_used_bytes);
  EXPECT_EQ(pool->usage().slow_used_bytes, usage.slow_used_bytes);
  const auto served = serve("t", {item("f", kMiB), item("b", kMiB)});
  ASSERT_TRUE(served);
  EXPECT_EQ(served->local_bytes, 2 * kMiB);
  ASSERT_TRUE(finish("t"));
  expect_consistent();
}

TEST_F(PoolOpen, HalfWrittenFilesGoAndForeignOnesStay) {
  write_file(slow_dir + "/.tmp@3", "half");
  write_file(fast_dir + "/.tmp@9", "half");
  write_file(fast_dir + "/.write@task-1@genes", "private");
  std::filesystem::create_directories(fast_dir + "/.write@task-2@genes/odd");
  write_file(slow_dir + "/short@1@10", "123456789");
  write_file(slow_dir + "/good@1@10", "0123456789");
  write_file(slow_dir + "/README", "not ours");
  std::filesystem::create_directories(slow_dir + "/dir@1@10");
  std::filesystem::create_symlink("/etc/passwd", slow_dir + "/link@1@10");
  write_file(slow_dir + "/lost@2@10", "123");
  ASSERT_EQ(::chmod((slow_dir + "/lost@2@10").c_str(), 01444), 0);
  open();
  EXPECT_EQ(placed(pool->replicas()),
            (std::vector<ReplicaChange>{{"good", 1, 10, false, true, false}}));
  EXPECT_TRUE(files_in(fast_dir).empty());
  EXPECT_EQ(files_in(slow_dir),
            (std::vector<std::string>{".damaged-lost@2@10", "README", "dir@1@10",
                                      file_name(pool->replicas().front()), "link@1@10"}))
      << "a damaged home replica is set aside for the operator";
  EXPECT_EQ(pool->usage().slow_used_bytes, 10u);
}

TEST_F(PoolOpen, FilesOfOlderProgramsGetTheirDigest) {
  write_file(slow_dir + "/old@3@5", "abcde");
  write_file(fast_dir + "/old@3@5", "abcde");
  for (int run = 0; run < 2; ++run) {
    open();
    EXPECT_EQ(pool->replicas(),
              (std::vector<ReplicaChange>{{"old", 3, 5, true, true, false, digest_of("abcde")}}));
    expect_consistent();
  }
}

TEST_F(PoolOpen, CopiesOfOlderProgramsThatDifferAreTwoContents) {
  write_file(slow_dir + "/a@1@3", "abc");
  write_file(fast_dir + "/a@1@2", "ab");
  open();
  EXPECT_EQ(pool->replicas().size(), 2u);
  expect_consistent();
}

TEST_F(PoolOpen, InterruptedMoveOfAnExclusiveTierIsCompleted) {
  std::filesystem::remove_all(slow_dir);
  slow_dir = options.slow_dir = make_folder("/dev/shm");
  options.slow_kind = "numa";
  write_file(slow_dir + "/a@1@3", "abc");
  write_file(fast_dir + "/a@1@3", "abc");
  open();
  EXPECT_EQ(placed(pool->replicas()),
            (std::vector<ReplicaChange>{{"a", 1, 3, false, true, false}}));
  expect_consistent();
}

TEST_F(PoolOpen, SmallerBudgetsEvictAtOnceAndKeepHomes) {
  open();
  ASSERT_TRUE(create("home", RandomFill{2 * kMiB, 1}));
  use(item("home", 2 * kMiB));
  remote->put("far", "f", 1, content(2 * kMiB, 'f'));
  use(remote_item("f", 2 * kMiB));
  options.fast_budget_bytes = kMiB;
  options.slow_budget_bytes = 2 * kMiB;
  open();
  EXPECT_EQ(pool->usage().fast_used_bytes, 0u);
  EXPECT_EQ(placed(pool->replicas()),
            (std::vector<ReplicaChange>{{"home", 1, 2 * kMiB, false, true, true}}));
  options.slow_budget_bytes = kMiB;
  open();
  EXPECT_EQ(pool->usage().slow_used_bytes, 2 * kMiB) << "a home replica stays, budget or not";
  const auto made = create("more", ZeroFill{1});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kExhausted);
}

// As of a start that was killed between making its probe and removing it.
TEST_F(PoolOpen, WhatAKilledStartLeftIsNotInTheWay) {
  open();
  pool.reset();
  for (const auto& dir : {fast_dir, slow_dir}) write_file(dir + "/" + draft_file_name(0), "");
  open();
  expect_consistent();
}

// As after a program that knew no checksums in names has run in between.
TEST_F(PoolOpen, AReplicaUnderBothItsNamesIsOne) {
  const auto data = content(1000, 'a');
  const auto plain = replica_file_name({{"a", 1, {}}, 1000});
  const auto stamped = replica_file_name({{"a", 1, digest_of(data)}, 1000});
  for (const auto& dir : {slow_dir, fast_dir}) {
    write_file(dir + "/" + plain, data);
    write_file(dir + "/" + stamped, content(1000, 'x'));  // which nobody has read
  }
  ASSERT_EQ(::chmod((slow_dir + "/" + plain).c_str(), 01444), 0) << "a home";
  open();
  const auto a = replica("a");
  ASSERT_TRUE(a);
  EXPECT_TRUE(a->in_slow);
  EXPECT_TRUE(a->in_fast);
  EXPECT_TRUE(a->home);
  expect_consistent();
  for (const auto& dir : {slow_dir, fast_dir}) EXPECT_EQ(read_file(dir + "/" + stamped), data);
  open();
  EXPECT_TRUE(replica("a")->home);
}

TEST_F(PoolOpen, OneThatCannotBeReadIsLeftAloneAndTheOthersAreThere) {
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  for (const auto& dir : {fast_dir, slow_dir})
    if (is_root) ASSERT_EQ(::chown(dir.c_str(), kNobody, kNobody), 0);
  if (is_root) ASSERT_EQ(::seteuid(kNobody), 0);  // who may not read everything
  open();
  ASSERT_TRUE(create("a", ZeroFill{1000}));
  pool.reset();
  const auto old = slow_dir + "/" + replica_file_name({{"old", 1, {}}, 1000});
  write_file(old, content(1000, 'o'));
  ASSERT_EQ(::chmod(old.c_str(), 0), 0);
  open();
  EXPECT_TRUE(replica("a"));
  EXPECT_FALSE(replica("old"));
  EXPECT_EQ(files_in(slow_dir).size(), 2U);
  pool.reset();
  if (is_root) ASSERT_EQ(::seteuid(0), 0);
}

}  // namespace
}  // namespace tierpilot
