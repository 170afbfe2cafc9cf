// What becomes of private copies in corners that few tasks come to.
#include <fcntl.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "tests/unit/memory/pool_fixture.h"

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

class PoolCommit : public PoolTest {
 protected:
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
