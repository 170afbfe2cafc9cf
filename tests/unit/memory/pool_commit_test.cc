// What becomes of private copies in corners that few tasks come to.
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "tests/unit/memory/pool_fixture.h"

namespace {

// A disk that is full when bytes that were taken are to be kept: one fsync fails, after so many.
std::atomic<int> fsyncs_before_full = INT_MAX;

}  // namespace

// Stands before the C library's.
extern "C" int fsync(int fd) {
  if (fsyncs_before_full-- != 0) return static_cast<int>(::syscall(SYS_fsync, fd));
  errno = ENOSPC;
  return -1;
}

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

class PoolCommit : public PoolTest {
 protected:
  std::map<std::pair<std::string, uint64_t>, ReplicaChange> latest_changes() {
    std::lock_guard lock(changes_mutex);
    std::map<std::pair<std::string, uint64_t>, ReplicaChange> latest;
    for (const auto& change : changes) latest[{change.name, change.version}] = change;
    return latest;
  }
  // A process that outlived the task `owner`, has its copy open and lets go within the time that
  // commits wait for it.
  std::thread late_writer(const std::string& path, std::function<void(int fd)> last_words) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    EXPECT_TRUE(fd);
    return std::thread([fd = std::move(fd), last_words = std::move(last_words)]() mutable {
      std::this_thread::sleep_for(300ms);
      last_words(fd.get());
      fd.reset();
    });
  }
};

TEST_F(PoolCommit, WhatItsLastWriterAddedIsOfTheVersionOrItIsRefused) {
  open();
  ASSERT_TRUE(create("w", ZeroFill{kMiB}));
  const auto served = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  auto late = late_writer(served->items[0].path, [](int fd) {
    const auto more = content(kMiB / 2, 'm');
    EXPECT_EQ(::pwrite(fd, more.data(), more.size(), kMiB), static_cast<ssize_t>(more.size()));
  });
  const auto done = finish("writer");
  late.join();
  if (!done) return;
  const auto version = replica("w", 2);
  ASSERT_TRUE(version);
  const auto read = serve("reader", {item("w", version->bytes, 2)});
  ASSERT_TRUE(read) << read.error().message;
  const auto bytes = read_file(read->items[0].path);
  EXPECT_EQ(bytes.size(), version->bytes);
  EXPECT_EQ(digest_of(bytes), version->digest);
  ASSERT_TRUE(finish("reader"));
}

TEST_F(PoolCommit, WhatGotASecondNameMeanwhileIsRefused) {
  open();
  ASSERT_TRUE(create("w", ZeroFill{kMiB}));
  const auto served = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  const auto path = served->items[0].path, second = fast_dir + ".second";
  auto late =
      late_writer(path, [&](int) { EXPECT_EQ(::link(path.c_str(), second.c_str()), 0) << errno; });
  const auto done = finish("writer");
  late.join();
  std::filesystem::remove(second);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
}

TEST_F(PoolCommit, AllOrNothingWheneverTheDiskIsFull) {
  for (int fsyncs = 0; fsyncs < 100; ++fsyncs) {
    if (pool) {
      ASSERT_TRUE(drop("a") && drop("b")) << "from the beginning";
    }
    open();
    ASSERT_TRUE(create("a", ZeroFill{kMiB}));
    ASSERT_TRUE(create("b", ZeroFill{kMiB}));
    const auto served = serve("writer", {write_item("a", kMiB), write_item("b", kMiB)});
    ASSERT_TRUE(served) << served.error().message;
    for (const auto& written : served->items) write_file(written.path, content(kMiB, 'n'));
    const auto before = pool->totals();
    fsyncs_before_full = fsyncs;
    const auto done = finish("writer");
    fsyncs_before_full = INT_MAX;
    const auto after = pool->totals();
    expect_consistent();
    if (done) {
      EXPECT_TRUE(replica("a", 2) && replica("b", 2));
      EXPECT_GT(fsyncs, 2) << "each file once, and its folder";
      EXPECT_EQ(after.commits, before.commits + 2);
      return;
    }
    EXPECT_EQ(done.error().code, ErrorCode::kExhausted) << done.error().message;
    EXPECT_FALSE(replica("a", 2) || replica("b", 2)) << "fsync " << fsyncs;
    EXPECT_EQ(after.commits, before.commits);
    EXPECT_EQ(after.discards, before.discards + 2);
    for (const auto& [key, told] : latest_changes())
      EXPECT_FALSE(key.second == 2 && told.home) << key.first << " is told as committed";
    open();
    EXPECT_FALSE(replica("a", 2) || replica("b", 2)) << "fsync " << fsyncs << ", after a restart";
    EXPECT_TRUE(in_slow("a") && in_slow("b"));
  }
  FAIL() << "a disk that is full but once is never done";
}

TEST_F(PoolCommit, BytesThatWereThereStayAsTheyWereWhenAnotherCannotBeCommitted) {
  const auto next = content(kMiB, 'n');
  remote->put("far", "w", 2, next);
  for (int fsyncs = 0; fsyncs < 100; ++fsyncs) {
    if (pool) {
      ASSERT_TRUE(drop("w") && drop("z")) << "from the beginning";
    }
    open();
    ASSERT_TRUE(create("w", ZeroFill{kMiB}));
    ASSERT_TRUE(create("z", ZeroFill{kMiB}));
    auto second = item("w", kMiB, 2);
    second.sources = {"far"};
    use(second);
    const auto served = serve("writer", {write_item("w", kMiB), write_item("z", kMiB)});
    ASSERT_TRUE(served) << served.error().message;
    write_file(served->items[0].path, next);
    write_file(served->items[1].path, content(kMiB, 'z'));
    fsyncs_before_full = fsyncs;
    const auto done = finish("writer");
    fsyncs_before_full = INT_MAX;
    expect_consistent();
    if (done) return;
    EXPECT_FALSE(replica("z", 2));
    EXPECT_EQ(placed(replica("w", 2)), (ReplicaChange{"w", 2, kMiB, true, false, false}))
        << "fsync " << fsyncs;
  }
  FAIL() << "a disk that is full but once is never done";
}

// The first is here already, and the second has grown beyond the fast tier's room.
TEST_F(PoolCommit, OfTwoThatNeedRoomNoneWaitsForTheOther) {
  open();
  ASSERT_TRUE(create("a", ZeroFill{kMiB}));
  ASSERT_TRUE(create("b", ZeroFill{kMiB}));
  const auto write = [&](const std::string& owner, const std::string& second) {
    const auto served = serve(owner, {write_item("a", kMiB), write_item("b", kMiB)});
    ASSERT_TRUE(served) << served.error().message;
    write_file(served->items[0].path, content(kMiB, 'A'));
    write_file(served->items[1].path, second);
    const auto done = finish(owner);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->size(), 2u);
  };
  write("try-1", content(kMiB, 'B'));
  write("try-2", content(3 * kMiB, 'C'));
  expect_consistent();
}

TEST_F(PoolCommit, BytesThatAReaderHadFetchedAreOnTheSlowTierAfterwards) {
  open();
  ASSERT_TRUE(create("w", ZeroFill{kMiB}));
  const auto next = content(kMiB, 'n');
  remote->put("far", "w", 2, next);
  auto second = item("w", kMiB, 2);
  second.sources = {"far"};
  use(second);
  ASSERT_FALSE(in_slow("w", 2));
  const auto served = serve("writer", {write_item("w", kMiB)});
  ASSERT_TRUE(served) << served.error().message;
  write_file(served->items[0].path, next);
  const auto done = finish("writer");
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(done->at(0).in_slow && done->at(0).home);
  EXPECT_TRUE(in_slow("w", 2));
  expect_consistent();
}

// Of a large one the kernel needs its time, and each heartbeat asks for the usage.
TEST_F(PoolCommit, WhatIsThrownAwayHoldsUpNobodyWhoAsksForTheUsage) {
  constexpr uint64_t kLarge = 256 * kMiB;
  options.fast_budget_bytes = kLarge * 2;
  options.slow_budget_bytes = 2 * kMiB;
  open();
  ASSERT_TRUE(create("w", ZeroFill{kMiB}));
  double least = 1;
  for (int tries = 0; tries < 5 && least > 0.5; ++tries) {
    const auto served = serve("writer", {write_item("w", kMiB)});
    ASSERT_TRUE(served) << served.error().message;
    write_file(served->items[0].path, content(kLarge, 'x'));
    Waiting<std::vector<ReplicaChange>> finished;
    const int64_t start_ns = system_clock().boot_ns();
    pool->finish("writer", true, finished.callback());
    int64_t longest_ns = 0;
    while (!finished.ready()) {
      const int64_t asked_ns = system_clock().boot_ns();
      (void)pool->usage();
      longest_ns = std::max(longest_ns, system_clock().boot_ns() - asked_ns);
      std::this_thread::sleep_for(1ms);
    }
    const double took_ns = static_cast<double>(system_clock().boot_ns() - start_ns);
    ASSERT_FALSE(finished.get()) << "there is no room for it";
    least = std::min(least, static_cast<double>(longest_ns) / took_ns);
  }
  EXPECT_LT(least, 0.5);
  expect_consistent();
}

}  // namespace
}  // namespace tierpilot
