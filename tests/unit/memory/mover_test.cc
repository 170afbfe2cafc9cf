#include "daemon/memory/mover/mover.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/bytes.h"
#include "daemon/memory/heat/access.h"
#include "tests/unit/memory/fake_pages.h"

namespace tierpilot {
namespace {

constexpr uint64_t kBase = 0x7f00'0000'0000;

struct MoverTest : ::testing::Test {
  MoveRequest request(uint64_t bytes, std::vector<int> nodes = {1}) const {
    return {.pid = 1, .start = kBase, .end = kBase + bytes, .nodes = std::move(nodes)};
  }
  FakePages pages;
  VirtualPacer pacer;
};

TEST_F(MoverTest, MovesInBatchesAndTellsOfEachPage) {
  pages.map(kBase, kBase + 8 * kMiB, 0);
  pages.map(kBase + 8 * kMiB, kBase + 10 * kMiB, 1);
  Mover mover(pages, pacer, {.batch_bytes = kMiB});
  const auto result = mover.move(request(16 * kMiB)).value();
  EXPECT_EQ(result.bytes_moved, 8 * kMiB);
  EXPECT_EQ(result.bytes_there, 2 * kMiB);
  EXPECT_EQ(result.bytes_absent, 6 * kMiB);
  EXPECT_TRUE(result.pages_failed.empty());
  EXPECT_EQ(pages.bytes_on(1), 10 * kMiB);
  EXPECT_EQ(pages.largest_call, kMiB / kBasePageBytes);
  EXPECT_EQ(pages.move_calls, 8) << "no call for what is there or absent";
}

TEST_F(MoverTest, PagesOfHugetlbfsAreMovedByTheirOwnSize) {
  for (const uint64_t page : {64 * kKiB, 2 * kMiB, 32 * kMiB})
    for (const bool tells : {true, false}) {
      pages.pages.clear();
      pages.tells_huge_pages = tells;
      pages.map(kBase, kBase + 64 * kMiB, 0, page);
      auto all = request(128 * kMiB);
      all.page_bytes = static_cast<uint32_t>(page);
      const auto result = Mover(pages, pacer).move(all).value();
      EXPECT_EQ(result.bytes_moved, 64 * kMiB) << page;
      EXPECT_EQ(result.bytes_absent, 64 * kMiB) << page;
      EXPECT_EQ(pages.bytes_on(1), 64 * kMiB) << page;
    }
}

TEST_F(MoverTest, SmallRequestsShareACallAndEachHasItsResult) {
  pages.map(kBase, kBase + 4 * kMiB, 0);
  pages.pages[kBase + 2 * kMiB].fails_with = EACCES;
  pages.pages[kBase + 2 * kMiB].failures = -1;
  Mover mover(pages, pacer);
  std::vector<MoveRequest> requests;
  for (const uint64_t at : {0, 2, 3, 8}) {
    requests.push_back(request(0));
    requests.back().start = kBase + at * kMiB;
    requests.back().end = requests.back().start + kMiB / 4;
  }
  const auto results = mover.move_all(requests).value();
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].bytes_moved, kMiB / 4);
  EXPECT_EQ(results[1].bytes_moved, kMiB / 4 - kBasePageBytes);
  EXPECT_EQ(results[1].pages_failed.at(EACCES), 1U);
  EXPECT_TRUE(results[2].pages_failed.empty());
  EXPECT_EQ(results[3].bytes_absent, kMiB / 4);
  EXPECT_EQ(pages.move_calls, 1);
}

TEST_F(MoverTest, RequestsOfOneCallAgreeOnProcessAndNodes) {
  pages.map(kBase, kBase + kMiB, 0);
  Mover mover(pages, pacer);
  const std::vector<MoveRequest> requests{request(kMiB), request(kMiB, {2})};
  EXPECT_EQ(mover.move_all(requests).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(mover.move_all({}).value().empty());
}

TEST_F(MoverTest, AHugePageInTwoRequestsMovesOnce) {
  pages.map(kBase, kBase + 2 * kMiB, 0, kHugePageBytes);
  Mover mover(pages, pacer);
  std::vector<MoveRequest> requests{request(kMiB), request(2 * kMiB)};
  requests[1].start = kBase + kMiB;
  const auto results = mover.move_all(requests).value();
  EXPECT_EQ(results[0].bytes_moved + results[1].bytes_moved, kHugePageBytes);
  EXPECT_EQ(pages.bytes_on(1), kHugePageBytes);
}

TEST_F(MoverTest, KeepsToItsRateInVirtualTime) {
  pages.map(kBase, kBase + 64 * kMiB, 0);
  Mover mover(pages, pacer, {.batch_bytes = kMiB, .bytes_per_s = 16 * kMiB});
  const int64_t start_ns = pacer.now_ns;
  for (uint64_t at = 0; at < 64; at += 8) {
    auto part = request(0);
    part.start = kBase + at * kMiB;
    part.end = part.start + 8 * kMiB;
    ASSERT_EQ(mover.move(part).value().bytes_moved, 8 * kMiB);
    const double elapsed_s = static_cast<double>(pacer.now_ns - start_ns) / 1e9;
    EXPECT_LE(static_cast<double>(pages.moved_bytes), 16.0 * kMiB * elapsed_s + kMiB);
  }
  EXPECT_NEAR(static_cast<double>(pacer.now_ns - start_ns) / 1e9, 4, 0.1);
}

TEST_F(MoverTest, ABusyPageGetsAnotherChanceLater) {
  pages.map(kBase, kBase + kMiB, 0);
  pages.pages[kBase + 4096].fails_with = EBUSY;
  pages.pages[kBase + 4096].failures = 2;
  const int64_t start_ns = pacer.now_ns;
  const auto result = Mover(pages, pacer).move(request(kMiB)).value();
  EXPECT_EQ(result.bytes_moved, kMiB);
  EXPECT_GE(pacer.now_ns - start_ns, 2'000'000 + 4'000'000);
}

TEST_F(MoverTest, WhatStaysIsCountedByErrno) {
  pages.map(kBase, kBase + kMiB, 0);
  for (const uint64_t page : {3, 7, 9}) {
    pages.pages[kBase + page * 4096].fails_with = page == 9 ? EBUSY : EACCES;
    pages.pages[kBase + page * 4096].failures = -1;
  }
  const auto result = Mover(pages, pacer).move(request(kMiB)).value();
  EXPECT_EQ(result.bytes_moved, kMiB - 3 * 4096);
  EXPECT_EQ(result.pages_failed, (std::map<int, uint64_t>{{EACCES, 2}, {EBUSY, 1}}));
}

TEST_F(MoverTest, SharedPagesAreNotTriedAgain) {
  pages.map(kBase, kBase + 4096, 0);
  pages.pages[kBase].fails_with = EACCES;
  pages.pages[kBase].failures = -1;
  EXPECT_EQ(Mover(pages, pacer).move(request(4096)).value().pages_failed.at(EACCES), 1U);
  EXPECT_EQ(pages.move_calls, 1);
}

TEST_F(MoverTest, AFullNodeIsLeftAloneForAWhile) {
  pages.map(kBase, kBase + 8 * kMiB, 0);
  pages.room[1] = kMiB;
  Mover mover(pages, pacer, {.batch_bytes = kMiB});
  const auto first = mover.move(request(8 * kMiB)).value();
  EXPECT_EQ(first.bytes_moved, kMiB);
  EXPECT_EQ(first.pages_failed.at(ENOMEM), 7 * kMiB / 4096);
  const int calls = pages.move_calls;
  pages.room[1] = 100 * kMiB;
  mover.move(request(8 * kMiB)).value();
  EXPECT_EQ(pages.move_calls, calls) << "the pause is not over";
  pacer.now_ns += 2'000'000'000;
  EXPECT_EQ(mover.move(request(8 * kMiB)).value().bytes_moved, 7 * kMiB);
}

TEST_F(MoverTest, TheNextNodeOfATierTakesWhatTheFirstCannot) {
  pages.map(kBase, kBase + 4 * kMiB, 0);
  pages.room[1] = kMiB;
  const auto result = Mover(pages, pacer).move(request(4 * kMiB, {1, 2})).value();
  EXPECT_EQ(result.bytes_moved, 4 * kMiB);
  EXPECT_EQ(pages.bytes_on(1), kMiB);
  EXPECT_EQ(pages.bytes_on(2), 3 * kMiB);
}

TEST_F(MoverTest, BasePagesAmongHugeOnesMoveToo) {
  for (const bool tells : {true, false}) {
    pages.pages.clear();
    pages.tells_huge_pages = tells;
    pages.map(kBase, kBase + 2 * kMiB, 0, kHugePageBytes);
    pages.map(kBase + 2 * kMiB, kBase + 4 * kMiB, 0);
    Mover mover(pages, pacer);
    auto request = this->request(4 * kMiB);
    request.page_bytes = kHugePageBytes;
    const auto result = mover.move(request);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(pages.bytes_on(1), 4 * kMiB);
    if (tells) {
      EXPECT_EQ(result->bytes_moved, 4 * kMiB);
    }
  }
}

TEST_F(MoverTest, HugePagesGoWholeOnWhateverKernel) {
  for (const bool tells : {true, false}) {
    FakePages huge;
    huge.tells_huge_pages = tells;
    huge.map(kBase, kBase + 4 * kMiB, 0, kHugePageBytes);
    huge.map(kBase + 4 * kMiB, kBase + 5 * kMiB, 0);
    Mover mover(huge, pacer);
    auto middle = request(5 * kMiB);
    middle.start += kMiB;  // begins inside a huge page
    const auto result = mover.move(middle).value();
    EXPECT_EQ(huge.bytes_on(1), 5 * kMiB) << tells;
    EXPECT_TRUE(result.pages_failed.empty()) << tells;
    if (tells) {
      EXPECT_EQ(result.bytes_moved, 5 * kMiB);
    }
    EXPECT_EQ(huge.moved_bytes, 5 * kMiB) << "each page once";
  }
}

TEST_F(MoverTest, AnEndedProcessIsNotFound) {
  pages.alive = 2;
  EXPECT_EQ(Mover(pages, pacer).move(request(kMiB)).error().code, ErrorCode::kNotFound);
}

TEST_F(MoverTest, NonsenseIsInvalid) {
  Mover mover(pages, pacer);
  EXPECT_EQ(mover.move(request(kMiB, {})).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(mover.move(request(0)).error().code, ErrorCode::kInvalid);
}

TEST_F(MoverTest, StopsBetweenBatches) {
  pages.map(kBase, kBase + kMiB, 0);
  std::stop_source stop;
  stop.request_stop();
  const auto result = Mover(pages, pacer).move(request(kMiB), stop.get_token()).value();
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(pages.moved_bytes, 0U);
}

// It stops at the sleep of that number.
class StoppingPacer final : public Pacer {
 public:
  explicit StoppingPacer(int at) : left_(at) {}
  int64_t boot_ns() const override { return now_ns_; }
  int64_t wall_ms() const override { return now_ns_ / 1'000'000; }
  int64_t thread_cpu_ns() const override { return 0; }
  bool sleep_until(int64_t boot_ns, std::stop_token) override {
    now_ns_ = std::max(now_ns_, boot_ns);
    return --left_ > 0;
  }

 private:
  int left_;
  int64_t now_ns_ = 1;
};

TEST_F(MoverTest, PagesThatItWasStoppedAtHaveNotFailed) {
  for (const int at : {1, 2, 3}) {
    pages.pages.clear();
    pages.map(kBase, kBase + 64 * kKiB, 0);
    for (auto& [address, page] : pages.pages) page.fails_with = EBUSY, page.failures = 1;
    StoppingPacer stopping(at);
    const auto result = Mover(pages, stopping).move(request(64 * kKiB)).value();
    EXPECT_TRUE(result.stopped) << at;
    EXPECT_TRUE(result.pages_failed.empty()) << at;
  }
}

TEST(SystemPageKernel, FindsAndMovesOwnPages) {
  constexpr size_t kPages = 16;
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::vector<void*> addresses;
  for (size_t i = 0; i < kPages; ++i) addresses.push_back(memory + i * 4096);
  for (size_t i = 0; i < kPages / 2; ++i) memory[i * 4096] = static_cast<char>(i + 1);
  std::vector<int> where(kPages, 99);
  auto& kernel = system_page_kernel();
  const int err = kernel.locate_pages(0, addresses, where);
  if (err == -ENOSYS || err == -EPERM) GTEST_SKIP() << "move_pages: " << strerror(-err);
  ASSERT_EQ(err, 0);
  for (size_t i = 0; i < kPages; ++i) EXPECT_EQ(where[i] >= 0, i < kPages / 2) << i;
  const int node = where[0];
  EXPECT_GE(kernel.move_pages(0, addresses, node, where), 0);
  EXPECT_EQ(where[0], node);
  EXPECT_EQ(memory[4096], 2);
  ::munmap(memory, kPages * 4096);
}

TEST(SystemPageKernel, FindsHugePages) {
  constexpr size_t kBytes = 4 * kHugePageBytes;
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const auto start =
      (reinterpret_cast<uint64_t>(memory) + kHugePageBytes - 1) & ~(kHugePageBytes - 1);
  auto* aligned = reinterpret_cast<char*>(start);
  ::madvise(aligned, kHugePageBytes, MADV_HUGEPAGE);
  ::madvise(aligned + kHugePageBytes, kHugePageBytes, MADV_NOHUGEPAGE);
  for (size_t at = 0; at < 2 * kHugePageBytes; at += 4096) aligned[at] = 1;
  const auto found = system_page_kernel().huge_pages(::getpid(), start, start + 2 * kHugePageBytes);
  ::munmap(memory, kBytes);
  if (!found) GTEST_SKIP() << found.error().message;
  if (found->empty()) GTEST_SKIP() << "the kernel gave no huge page";
  EXPECT_EQ(*found, std::vector<uint64_t>{start});
}

}  // namespace
}  // namespace tierpilot
