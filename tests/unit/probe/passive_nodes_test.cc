// What the probe tells of NUMA nodes: needs two of them, and a kernel that lets programs run at its
// functions.
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/sysroot.h"
#include "daemon/probe/passive/passive_probe.h"
#include "daemon/probe/passive/vm_counters.h"

namespace tierpilot {
namespace {

const auto kPageBytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

// Small pages, faulted in on `node`.
class Pages {
 public:
  Pages(size_t count, int node) : count_(count) {
    void* memory = ::mmap(nullptr, count * kPageBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(memory);
    ::madvise(memory_, count * kPageBytes, MADV_NOHUGEPAGE);
    bind(node, 0);
    touch();
  }
  ~Pages() { ::munmap(memory_, count_ * kPageBytes); }
  Pages(const Pages&) = delete;

  void touch() {
    for (size_t i = 0; i < count_; ++i) static_cast<volatile char*>(memory_)[i * kPageBytes] += 1;
  }

  // `flags`: MPOL_MF_...
  void bind(int node, unsigned flags) {
    const unsigned long mask = 1ul << node;
    EXPECT_EQ(::syscall(SYS_mbind, memory_, count_ * kPageBytes, MPOL_BIND, &mask, 64ul, flags), 0);
  }
  void unbind() {
    EXPECT_EQ(::syscall(SYS_mbind, memory_, count_ * kPageBytes, MPOL_DEFAULT, nullptr, 0ul, 0u),
              0);
  }

  // How many are on `node` afterwards.
  size_t move_to(int node) {
    std::vector<void*> pages;
    for (size_t i = 0; i < count_; ++i) pages.push_back(memory_ + i * kPageBytes);
    std::vector<int> nodes(count_, node), where(count_, -1);
    ::syscall(SYS_move_pages, 0, count_, pages.data(), nodes.data(), where.data(), MPOL_MF_MOVE);
    return static_cast<size_t>(std::ranges::count(where, node));
  }

 private:
  size_t count_;
  char* memory_;
};

class PassiveNodes : public testing::Test {
 protected:
  static constexpr size_t kPages = 4096;

  void SetUp() override {
    const auto nodes = Sysroot().read_id_list("/sys/devices/system/node/has_memory");
    if (!nodes || nodes->size() < 2) GTEST_SKIP() << "needs two NUMA nodes with memory";
    near_ = (*nodes)[0];
    far_ = (*nodes)[1];
  }

  void start(const std::string& subject, PassiveOptions options = {}) {
    options.subjects = {subject};
    options.event_pages = 1;
    probe_ = PassiveProbe::start(options);
    for (const auto& state : probe_->subjects())
      if (state.subject == subject && !state.on) GTEST_SKIP() << state.reason;
  }

  // Skips where pairs are not told apart.
  void start_migration() {
    start("migration");
    if (IsSkipped()) return;
    const auto why = probe_->sample().migration->pairs_unavailable;
    if (!why.empty()) GTEST_SKIP() << why;
  }

  MigrationStats::Pair pair(std::optional<int> from, std::optional<int> to) {
    const auto sample = probe_->sample();
    for (const auto& found : sample.migration->pairs)
      if (found.from_node == from && found.to_node == to) return found;
    return {};
  }

  int near_ = 0, far_ = 0;
  std::unique_ptr<PassiveProbe> probe_;
};

TEST_F(PassiveNodes, MovedPagesAreCountedBySourceAndTarget) {
  start_migration();
  if (IsSkipped()) return;
  Pages pages(kPages, near_);
  pages.unbind();
  const size_t there = pages.move_to(far_);
  ASSERT_GT(there, kPages * 9 / 10);
  auto out = pair(near_, far_);
  EXPECT_GE(out.by_reason["MR_SYSCALL"].pages_moved, there);
  EXPECT_LE(out.by_reason["MR_SYSCALL"].pages_moved, there * 105 / 100);
  EXPECT_GT(out.total.busy_ns, 0u);
  EXPECT_GT(out.live_gb_per_s.value_or(0), 0);
  EXPECT_EQ(pair(far_, near_).total.calls, 0u) << "nothing went back yet";
  const size_t back = pages.move_to(near_);
  EXPECT_GE(pair(far_, near_).by_reason["MR_SYSCALL"].pages_moved, back);
  EXPECT_LE(pair(near_, far_).total.pages_moved, there * 105 / 100);
}

TEST_F(PassiveNodes, EventsNameTheirNodes) {
  start_migration();
  if (IsSkipped()) return;
  Pages pages(64, near_);
  pages.unbind();
  ASSERT_GT(pages.move_to(far_), 32u);
  uint64_t seen = 0;
  for (const auto& event : probe_->drain_events())
    if (event.detail == "MR_SYSCALL" && event.from_node == near_ && event.to_node == far_)
      seen += event.pages;
  EXPECT_GE(seen, 32u);
}

TEST_F(PassiveNodes, ATargetThatAPolicyChoosesIsNotGuessed) {
  start_migration();
  if (IsSkipped()) return;
  Pages pages(256, near_);
  pages.bind(far_, MPOL_MF_MOVE);
  EXPECT_GE(pair(near_, std::nullopt).by_reason["MR_MEMPOLICY_MBIND"].pages_moved, 128u);
}

TEST_F(PassiveNodes, FaultTimesAreKeptByNode) {
  start("fault_time", {.fault_time_period = 4});
  if (IsSkipped()) return;
  for (const int node : {near_, far_}) {
    Pages pages(kPages, node);
    const auto stats = *probe_->sample().fault_time;
    ASSERT_TRUE(stats.by_node_ns.contains(node));
    const auto& durations_ns = stats.by_node_ns.at(node);
    EXPECT_GE(durations_ns.count() * stats.period, kPages * 8 / 10);
    EXPECT_GT(durations_ns.quantile(0.5), 0);
  }
}

// The kernel decides when it hides pages for a hint: the first time a second after the start.
TEST_F(PassiveNodes, HintFaultsAreCountedAsTheKernelCountsThem) {
  if (Sysroot().read_int("/proc/sys/kernel/numa_balancing").value_or(0) == 0)
    GTEST_SKIP() << "kernel.numa_balancing is 0";
  start("numa_hint");
  if (IsSkipped()) return;
  auto kernel = VmEvents::start({"numa_hint_faults"});
  ASSERT_TRUE(kernel) << kernel.error().message;
  probe_->track_group(::getpgrp());
  Pages pages(kPages, far_);
  pages.unbind();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (probe_->sample().numa_hint->faults < 200 && std::chrono::steady_clock::now() < end)
    pages.touch();
  const auto counted = *probe_->sample().numa_hint;
  const auto expected = kernel->read().at("numa_hint_faults");
  ASSERT_GE(counted.faults, 200u);
  EXPECT_GE(counted.faults, expected * 9 / 10);
  EXPECT_LE(counted.faults, expected * 11 / 10);
  const auto group = probe_->group_io(::getpgrp()).numa_hint;
  ASSERT_EQ(group.has_value(), counted.pages.has_value()) << counted.source;
  if (!group) return;
  EXPECT_GE(group->faults, counted.faults / 2) << "mostly this process was running";
  EXPECT_LE(group->faults, probe_->sample().numa_hint->faults);
  EXPECT_GE(*group->pages, group->faults);
}

}  // namespace
}  // namespace tierpilot
