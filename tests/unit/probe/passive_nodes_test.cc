// What the probe tells of NUMA nodes: needs two of them, and a kernel that lets programs run at its
// functions.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/probe/passive/vm_counters.h"
#include "tests/unit/probe/passive_nodes.h"

namespace tierpilot {
namespace {

// A process in a cgroup of its own below the root, with pages that are charged to it.
class ChargedProcess {
 public:
  ChargedProcess(const std::string& name, size_t count, int node)
      : directory_("/sys/fs/cgroup/tierpilot-test-" + name), count_(count) {
    std::filesystem::create_directory(directory_);
    memory_ = static_cast<char*>(::mmap(nullptr, count * kPageBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      fill(node);
      // The parent reads this as "ready", or as the end of the file if it failed.
      if (::write(ready[1], "x", 1) != 1) ::_exit(1);
      ::pause();
    }
    ::close(ready[1]);
    char told;
    ready_ = ::read(ready[0], &told, 1) == 1;
    ::close(ready[0]);
  }
  ~ChargedProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(memory_, count_ * kPageBytes);
    std::error_code ignored;
    std::filesystem::remove(directory_, ignored);
  }
  ChargedProcess(const ChargedProcess&) = delete;

  bool ready() const { return ready_; }
  uint64_t cgroup_id() const {
    struct stat info {};
    return ::stat(directory_.c_str(), &info) == 0 ? info.st_ino : 0;
  }

  // How many are on `node` afterwards; this process moves them, `batch` in a call.
  size_t move_to(int node, size_t batch) {
    size_t arrived = 0;
    for (size_t at = 0; at < count_; at += batch) {
      std::vector<void*> pages;
      for (size_t i = at; i < std::min(at + batch, count_); ++i)
        pages.push_back(memory_ + i * kPageBytes);
      std::vector<int> nodes(pages.size(), node), where(pages.size(), -1);
      ::syscall(SYS_move_pages, pid_, pages.size(), pages.data(), nodes.data(), where.data(),
                MPOL_MF_MOVE);
      arrived += static_cast<size_t>(std::ranges::count(where, node));
    }
    return arrived;
  }

 private:
  void fill(int node) {
    if (!(std::ofstream(directory_ / "cgroup.procs") << "0" << std::flush)) ::_exit(1);
    const unsigned long mask = 1ul << node;
    ::syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64ul);
    ::madvise(memory_, count_ * kPageBytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < count_; ++i) static_cast<volatile char*>(memory_)[i * kPageBytes] = 1;
    ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0ul);
  }

  std::filesystem::path directory_;
  size_t count_;
  char* memory_;
  pid_t pid_ = -1;
  bool ready_ = false;
};

bool tasks_can_have_memory_cgroups() {
  const auto controllers = Sysroot().read("/sys/fs/cgroup/cgroup.subtree_control");
  return controllers && controllers->find("memory") != std::string::npos && ::getuid() == 0;
}

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

TEST_F(PassiveNodes, MovedPagesAreCountedForTheCgroupThatTheyAreChargedTo) {
  start_migration();
  if (IsSkipped()) return;
  if (!tasks_can_have_memory_cgroups())
    GTEST_SKIP() << "needs root, and the memory controller below /sys/fs/cgroup";
  ChargedProcess one("one", kPages, near_), two("two", kPages / 4, near_);
  ASSERT_TRUE(one.ready() && two.ready());
  probe_->track_cgroup(one.cgroup_id());
  probe_->track_group(2, {.id = two.cgroup_id(), .charges_memory = true});
  for (const size_t batch : {512, 16, 1}) {
    const auto before_one = cgroup_migrations(one.cgroup_id());
    const auto before_two = cgroup_migrations(two.cgroup_id());
    const size_t one_there = one.move_to(far_, batch), two_there = two.move_to(far_, batch);
    ASSERT_GT(one_there, kPages * 9 / 10);
    const auto seen_one = cgroup_migrations(one.cgroup_id());
    EXPECT_NEAR(seen_one.total.pages_moved - before_one.total.pages_moved, one_there,
                one_there * 0.05);
    EXPECT_EQ(seen_one.by, OwnedMigrations::By::kMemory);
    const auto seen_two = probe_->group_io(2).migration;
    ASSERT_TRUE(seen_two);
    EXPECT_NEAR(seen_two->total.pages_moved - before_two.total.pages_moved, two_there,
                two_there * 0.05);
    ASSERT_FALSE(seen_two->pairs.empty());
    EXPECT_EQ(seen_two->pairs[0].from_node, near_);
    EXPECT_EQ(seen_two->pairs[0].to_node, far_);
    EXPECT_GT(seen_two->pairs[0].by_reason.at("MR_SYSCALL").busy_ns, 0u);
    one.move_to(near_, batch);
    two.move_to(near_, batch);
  }
  probe_->untrack_group(2);
  EXPECT_FALSE(probe_->group_io(2).migration);
}

TEST_F(PassiveNodes, WithoutAMemoryCgroupAGroupsOwnCallsAreCounted) {
  start_migration();
  if (IsSkipped()) return;
  probe_->track_group(::getpgrp());
  Pages pages(kPages, near_);
  pages.unbind();
  const size_t there = pages.move_to(far_);
  const auto mine = probe_->group_io(::getpgrp()).migration;
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->by, OwnedMigrations::By::kCaller);
  EXPECT_NEAR(mine->by_reason.at("MR_SYSCALL").pages_moved, there, there * 0.05);
}

// One in a few is timed, and stands for the others.
TEST_F(PassiveNodes, DurationsOfSinglePagesAreSampled) {
  start_migration();
  if (IsSkipped()) return;
  Pages pages(kPages, near_);
  pages.unbind();
  const size_t there = pages.move_each_to(far_);
  const auto counts = pair(near_, far_).by_reason["MR_SYSCALL"];
  EXPECT_NEAR(counts.pages_moved, there, there * 0.05);
  EXPECT_NEAR(counts.timed_pages, counts.pages_moved, counts.pages_moved * 0.2);
}

// Threads have slots of their own in the programs' table: their first calls are drawn like others.
TEST_F(PassiveNodes, SingleCallsOfManyThreadsAreSampledAlike) {
  start_migration();
  if (IsSkipped()) return;
  Pages pages(1, near_);
  pages.unbind();
  for (int i = 0; i < 1024; ++i)
    std::thread([&] { pages.move_each_to(i % 2 == 0 ? far_ : near_); }).join();
  const auto seen = *probe_->sample().migration;
  ASSERT_GE(seen.total.calls, 1000u);
  EXPECT_NEAR(seen.duration_ns.count(), seen.total.calls, seen.total.calls * 0.4);
  EXPECT_EQ(seen.lost_calls, 0u);
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
  probe_->track_group(::getpgrp());
  for (const int node : {near_, far_}) {
    Pages pages(kPages, node);
    const auto mine = probe_->group_io(::getpgrp()).fault_time;
    const auto stats = *probe_->sample().fault_time;
    ASSERT_TRUE(mine && mine->by_node_ns.contains(node));
    EXPECT_GE(mine->by_node_ns.at(node).count() * stats.period, kPages * 8 / 10);
    EXPECT_LE(mine->by_node_ns.at(node).count(), stats.by_node_ns.at(node).count());
    EXPECT_EQ(mine->lost, 0u);
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
