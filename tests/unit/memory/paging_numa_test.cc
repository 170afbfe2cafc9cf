// The loop with the kernel's own trackers and page moves, on a machine that has two memory nodes:
// a child keeps a quarter of its memory hot, and later another one.
#include <gtest/gtest.h>
#include <numaif.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>

#include "daemon/memory/heat/choose.h"
#include "daemon/memory/loop/paging_loop.h"
#include "daemon/memory/loop/tiers.h"

namespace tierpilot {
namespace {

constexpr uint64_t kBytes = 64 << 20;
constexpr uint64_t kQuarter = kBytes / 4;

// Shared with the child: which quarter is hot.
struct Orders {
  std::atomic<uint64_t> hot_quarter{0};
  std::atomic<bool> ready{false};
};

[[noreturn]] void use_memory(Orders& orders, volatile char* memory, int far_node) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const unsigned long mask = 1UL << far_node;
  // Only where pages are first; MPOL_BIND would hold them there against nothing but faults.
  ::set_mempolicy(MPOL_BIND, &mask, 64);
  for (uint64_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
  ::set_mempolicy(MPOL_DEFAULT, nullptr, 0);
  orders.ready = true;
  // An emulated CPU's TLB holds all of the memory, and the kernel sees no access to a page that is
  // in the TLB: a change of more than 33 pages' protection empties it.
  constexpr size_t kScratch = 64 * 4096;
  auto* scratch = static_cast<char*>(
      ::mmap(nullptr, kScratch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  uint64_t random = 88172645463325252ULL;
  for (uint64_t count = 0;; ++count) {
    if (count % (1 << 15) == 0) {
      ::mprotect(scratch, kScratch, PROT_READ | PROT_WRITE);
      for (size_t at = 0; at < kScratch; at += 4096) scratch[at] = 1;
      ::mprotect(scratch, kScratch, PROT_READ);
    }
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    const uint64_t base = random % 10 < 9 ? orders.hot_quarter * kQuarter : 0;
    const uint64_t span = random % 10 < 9 ? kQuarter : kBytes;
    (void)memory[base + (random >> 8) % span];
  }
}

struct PagingNumaTest : ::testing::Test {
  void SetUp() override {
    const auto topology = discover_topology(sysroot, {.nvml_library = {}});
    ASSERT_TRUE(topology) << topology.error().message;
    tiers = make_paging_tiers(*topology).tiers;
    if (tiers.size() < 2) GTEST_SKIP() << "one memory tier: nothing can be moved";
    const auto best = trackers.choose();
    if (!best) GTEST_SKIP() << best.error().message;
    source = *best;
    if (!source->offer().traits.sees_repeats)
      GTEST_SKIP() << "no tracker here sees memory that is in use already";
    start_child();
  }

  void start_child() {
    orders = new (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
        Orders;
    memory = static_cast<char*>(
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::madvise(memory, kBytes, MADV_NOHUGEPAGE);
    child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) use_memory(*orders, memory, tiers.back().nodes.front());
    while (!orders->ready) ::usleep(10'000);
  }

  void TearDown() override {
    if (child <= 0) return;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }

  uint64_t pages_in(size_t tier, uint64_t from, uint64_t to) {
    std::vector<void*> pages;
    for (uint64_t at = from; at < to; at += 4096) pages.push_back(memory + at);
    std::vector<int> status(pages.size(), -1);
    system_page_kernel().locate_pages(child, pages, status);
    return static_cast<uint64_t>(std::count(status.begin(), status.end(), tiers[tier].nodes[0]));
  }
  uint64_t fast_pages(uint64_t from, uint64_t to) { return pages_in(0, from, to); }

  // Of all accesses, by what the child does.
  double fast_access_share() {
    const auto everywhere = static_cast<double>(fast_pages(0, kBytes)) / (kBytes / 4096.0);
    return 0.9 * recall() + 0.1 * everywhere;
  }

  std::unique_ptr<PagingLoop> make_loop(
      LoopOptions options, std::function<void(std::vector<PagingTier>&)> refresh_tiers = {}) {
    options.interval_ns = 500'000'000;
    options.cpu_share = 0;
    options.heat.half_life_s = 2;
    // Only the buffer: what the child inherited is shared with this process, and so stays in fast
    // memory, at the cost of the budget.
    options.ranges.min_bytes = kBytes / 2;
    return std::make_unique<PagingLoop>(LoopEnvironment{.sysroot = sysroot,
                                                        .pacer = pacer,
                                                        .kernel = system_page_kernel(),
                                                        .trackers = *source,
                                                        .tiers = tiers,
                                                        .refresh_tiers = refresh_tiers},
                                        options);
  }

  // Rounds until `done`, for at most a minute.
  void run_until(PagingLoop& loop, const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done() && std::chrono::steady_clock::now() < end)
      pacer.sleep_until(loop.run_round(), {});
  }

  // What the tracker saw, for people who wonder about a failure.
  void print_heat(const PagingLoop& loop) {
    double heat[4] = {};
    for (const auto& view : loop.view())
      for (const auto& chunk : view.chunks)
        if (const auto at = chunk.start - reinterpret_cast<uint64_t>(memory); at < kBytes)
          heat[at / kQuarter] +=
              chunk.heat * static_cast<double>(chunk.end - chunk.start) / kQuarter;
    std::cout << "  accesses per page and second, by quarter: " << heat[0] << ", " << heat[1]
              << ", " << heat[2] << ", " << heat[3] << "\n";
  }

  // Of the hot quarter's pages; of the pages in fast memory.
  double recall() {
    const uint64_t start = orders->hot_quarter * kQuarter;
    return static_cast<double>(fast_pages(start, start + kQuarter)) / (kQuarter / 4096.0);
  }
  double precision() {
    const uint64_t start = orders->hot_quarter * kQuarter;
    return static_cast<double>(fast_pages(start, start + kQuarter)) /
           static_cast<double>(std::max<uint64_t>(fast_pages(0, kBytes), 1));
  }

  Sysroot sysroot;
  SystemPacer pacer;
  TrackerChoice trackers{sysroot, pacer};
  TrackerSource* source = nullptr;
  std::vector<PagingTier> tiers;
  Orders* orders = nullptr;
  char* memory = nullptr;
  pid_t child = 0;
};

TEST_F(PagingNumaTest, FollowsTheHotQuarter) {
  const auto placing = make_loop({});
  auto& loop = *placing;
  ASSERT_TRUE(loop.add({.pid = child,
                        .group = {.name = "child", .fast_budget_bytes = kQuarter + (1 << 20)},
                        .mode = PagingMode::kEnforce}));
  for (const uint64_t quarter : {0, 2}) {
    orders->hot_quarter = quarter;
    const auto start = std::chrono::steady_clock::now();
    const auto took_s = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    run_until(loop, [&] { return recall() >= 0.92 && precision() >= 0.9; });
    const auto counters = loop.counters();
    std::cout << "quarter " << quarter << ": recall " << recall() << ", precision " << precision()
              << ", after " << took_s() << " s, " << counters.rounds << " rounds, promoted "
              << (counters.promoted_bytes >> 20) << " MiB, demoted "
              << (counters.demoted_bytes >> 20) << " MiB, CPU "
              << static_cast<double>(counters.cpu_ns) / 1e9 << " s, tracker's "
              << static_cast<double>(counters.tracker_cpu_ns) / 1e9 << " s\n";
    print_heat(loop);
    for (const auto& [err, pages] : counters.failed_pages)
      std::cout << "  " << strerror(err) << ": " << pages << " pages\n";
    EXPECT_GT(recall(), 0.9) << tracker_name(source->offer().traits.kind);
    EXPECT_GT(precision(), 0.9);
  }
  EXPECT_LE(fast_pages(0, kBytes) * 4096, kQuarter + (4 << 20));
}

// Real pages under latencies of a model, as emulated memory knows no load: the faster tier gets
// slower the more of the accesses it has, and both are level at a half.
TEST_F(PagingNumaTest, BalanceStopsWhereTheLatenciesAreLevel) {
  const auto loop = make_loop({}, [this](std::vector<PagingTier>& now) {
    now.front().loaded_latency_ns = 100 + 800 * fast_access_share();
    now[1].loaded_latency_ns = 500;
  });
  ASSERT_TRUE(loop->add({.pid = child,
                         .group = {.name = "child", .policy = PagingPolicy::kBalance},
                         .mode = PagingMode::kEnforce}));
  ASSERT_EQ(fast_access_share(), 0);
  int level_rounds = 0;
  run_until(*loop, [&] {
    level_rounds = std::abs(fast_access_share() - 0.5) < 0.15 ? level_rounds + 1 : 0;
    return level_rounds == 10;
  });
  std::cout << "share of accesses in fast memory: " << fast_access_share() << "\n";
  print_heat(*loop);
  EXPECT_EQ(level_rounds, 10) << fast_access_share();
}

TEST_F(PagingNumaTest, OfThreeTiersTheMiddleOneTakesWhatTheFastestHasNoRoomFor) {
  if (tiers.size() < 3) GTEST_SKIP() << tiers.size() << " memory tiers";
  const auto loop = make_loop({});
  ASSERT_TRUE(loop->add({.pid = child,
                         .group = {.name = "child", .fast_budget_bytes = kQuarter + (1 << 20)},
                         .mode = PagingMode::kEnforce}));
  orders->hot_quarter = 1;
  const auto left_behind = [this] { return pages_in(2, 0, kBytes); };
  run_until(*loop, [&] { return recall() > 0.92 && left_behind() < kBytes / 4096 / 4; });
  EXPECT_GT(recall(), 0.9);
  EXPECT_LT(left_behind(), kBytes / 4096 / 4);
  EXPECT_LE(fast_pages(0, kBytes) * 4096, kQuarter + (4 << 20));
}

}  // namespace
}  // namespace tierpilot
