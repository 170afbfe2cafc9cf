// The probe on the running kernel: skips what this machine or user may not do.
#include <bpf/btf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/sysroot.h"
#include "base/unique_fd.h"
#include "daemon/probe/passive/passive_probe.h"
#include "daemon/probe/passive/programs.h"
#include "tests/unit/probe/running_kernel.h"

#ifdef __SANITIZE_THREAD__
// One of the children below starts a thread, and this process has some.
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

namespace tierpilot {
namespace {

constexpr size_t kPages = 3000;
constexpr size_t kFileBytes = 4 << 20;
constexpr int kNoDirectWrites = 3;  // exit status

void touch_fresh_pages() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) ::_exit(1);
  ::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
}

// Past the page cache: what the kernel's flusher threads write back would not count as the child's,
// and they come first whenever enough is dirty on the machine.
void write_file_directly() {
  char name[] = "tierpilot-io-XXXXXX";
  const UniqueFd file(::mkostemp(name, O_DIRECT));
  if (file.get() < 0) ::_exit(errno == EINVAL ? kNoDirectWrites : 1);
  ::unlink(name);
  alignas(4096) static std::array<char, 1 << 16> block;
  for (size_t done = 0; done < kFileBytes; done += block.size())
    if (::write(file.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size()))
      ::_exit(errno == EINVAL ? kNoDirectWrites : 1);
}

TEST(PassiveProbe, EverySubjectIsOnOrHasAReason) {
  const auto probe = PassiveProbe::start({});
  ASSERT_EQ(probe->subjects().size(), 7u);
  const auto sample = probe->sample();
  for (const auto& state : probe->subjects()) {
    if (!state.on) {
      EXPECT_TRUE(state.programs.empty()) << state.subject;
      EXPECT_TRUE(state.reason.starts_with("unavailable: ")) << state.reason;
    }
    // That would be a fault of the program, not of the machine.
    EXPECT_EQ(state.reason.find("verifier"), std::string::npos) << state.reason;
  }
  EXPECT_EQ(sample.migration.has_value(), state_of(*probe, "migration").on);
  EXPECT_EQ(sample.reclaim.has_value(), state_of(*probe, "reclaim").on);
  EXPECT_EQ(sample.compaction.has_value(), state_of(*probe, "compaction").on);
  EXPECT_EQ(sample.numa_hint.has_value(), state_of(*probe, "numa_hint").on);
  EXPECT_FALSE(sample.fault_time) << "it has a price, and nobody asked for it";
  EXPECT_EQ(sample.faults.has_value(), state_of(*probe, "faults").on);
  EXPECT_EQ(sample.block_io.has_value(), state_of(*probe, "block_io").on);
}

TEST(PassiveProbe, SubjectsCanBeTurnedOff) {
  PassiveOptions options;
  options.subjects = {"faults"};
  const auto probe = PassiveProbe::start(options);
  EXPECT_EQ(state_of(*probe, "block_io").reason, "unavailable: turned off");
  EXPECT_FALSE(probe->sample().block_io);
  EXPECT_EQ(probe->event_fd(), -1);
  EXPECT_TRUE(probe->drain_events().empty());
}

TEST(PassiveProbe, FaultsOfTheMachineAreCounted) {
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "faults");
  const auto before = probe->sample().faults->faults;
  touch_fresh_pages();
  EXPECT_GE(probe->sample().faults->faults - before, kPages);
  EXPECT_FALSE(probe->group_io(::getpgrp()).faults) << "this group is not tracked";
}

TEST(PassiveProbe, GroupsAreKeptApart) {
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "faults");
  Child busy(touch_fresh_pages), idle([] {});
  const int32_t busy_group = busy.pgid(), idle_group = idle.pgid();
  probe->track_group(busy_group);
  probe->track_group(idle_group);
  busy.go();
  ASSERT_EQ(busy.finish(), 0);
  const auto counted = probe->group_io(busy_group).faults;
  const auto other = probe->group_io(idle_group).faults;
  if (!counted) GTEST_SKIP() << state_of(*probe, "faults").reason;
  ASSERT_TRUE(other);
  EXPECT_GE(counted->faults, kPages);
  EXPECT_LT(counted->faults, kPages * 4);  // TSan faults in two shadow pages for each
  EXPECT_LT(other->faults, kPages / 2);
  probe->untrack_group(busy_group);
  EXPECT_FALSE(probe->group_io(busy_group).faults);
}

TEST(PassiveProbe, WrittenBytesReachTheDevice) {
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "block_io");
  Child child(write_file_directly);
  const int32_t group = child.pgid();
  probe->track_group(group);
  const auto before = probe->sample().block_io->write.bytes;
  child.go();
  const int status = child.finish();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoDirectWrites)
    GTEST_SKIP() << "this folder's file system has no direct writes";
  ASSERT_EQ(status, 0);
  // Completion may be counted on another CPU a moment after the write returned.
  const auto grown = [&] { return probe->sample().block_io->write.bytes - before; };
  if (!eventually([&] { return grown() >= kFileBytes; }))
    GTEST_SKIP() << "this folder's file system writes to no block device that the kernel sees";
  auto mine = probe->group_io(group).block_io;
  ASSERT_TRUE(mine);
  // The machine may have got there by the writes of others.
  EXPECT_TRUE(eventually([&] {
    mine = probe->group_io(group).block_io;
    return mine->write.bytes >= kFileBytes;
  })) << mine->write.bytes;
  EXPECT_GE(mine->write.requests, 1u);
  EXPECT_GE(mine->latency_ns.count(), 1u);
  EXPECT_GT(mine->latency_ns.quantile(0.5), 0);
  EXPECT_LE(mine->write.bytes, probe->sample().block_io->write.bytes);
}

void touch_and_wait() {
  touch_fresh_pages();
  ::pause();
}

// Threads and children, the living and the dead: none is missed, none counted twice.
TEST(PassiveProbe, FaultsOfAllTasksOfAGroupAreCounted) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan ends a forked child that starts a thread (dup thread with used id)";
#endif
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "faults");
  Child group([] {
    std::thread(touch_fresh_pages).join();
    if (const pid_t dead = ::fork(); dead == 0)
      touch_fresh_pages(), ::_exit(0);
    else
      ::waitpid(dead, nullptr, 0);
    if (::fork() == 0) touch_and_wait();
    touch_and_wait();
  });
  const int32_t pgid = group.pgid();
  probe->track_group(pgid);
  group.go();
  const auto counted = [&] {
    const auto faults = probe->group_io(pgid).faults;
    return faults ? faults->faults : 0;
  };
  if (!probe->group_io(pgid).faults) {
    group.finish(SIGKILL);
    GTEST_SKIP() << state_of(*probe, "faults").reason;
  }
  EXPECT_TRUE(eventually([&] { return counted() >= 4 * kPages; })) << counted();
  const auto living = counted();
  EXPECT_LT(living, 4 * kPages * 4);
  ::kill(-pgid, SIGKILL);
  group.finish();
  // One that is being taken down is neither for a moment.
  EXPECT_TRUE(eventually([&] { return counted() >= living; })) << counted();
  EXPECT_LT(counted(), living + kPages) << "the dead were counted while they lived, too";
}

// Faults pages in, then asks the kernel to move each to the node where it is not.
size_t move_pages_between(int from, int to) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return 0;
  ::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
  std::vector<void*> pages;
  std::vector<int> nodes(kPages, from), where(kPages, -1);
  for (size_t i = 0; i < kPages; ++i) {
    memory[i * page] = 1;
    pages.push_back(memory + i * page);
  }
  for (const int node : {from, to}) {
    std::ranges::fill(nodes, node);
    ::syscall(SYS_move_pages, 0, kPages, pages.data(), nodes.data(), where.data(), MPOL_MF_MOVE);
  }
  const auto arrived = static_cast<size_t>(std::ranges::count(where, to));
  ::munmap(memory, kPages * page);
  return arrived;
}

TEST(PassiveProbe, PagesMovedBetweenNodesAreSeen) {
  const auto nodes = Sysroot().read_id_list("/sys/devices/system/node/has_memory");
  if (!nodes || nodes->size() < 2) GTEST_SKIP() << "needs two NUMA nodes with memory";
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "migration");
  const size_t arrived = move_pages_between((*nodes)[0], (*nodes)[1]);
  ASSERT_GT(arrived, kPages / 2);
  const auto found = *probe->sample().migration;
  EXPECT_GE(found.by_reason.at("MR_SYSCALL").pages_moved, arrived);
  EXPECT_GT(found.duration_ns.count(), 0u);
  EXPECT_GT(found.live_gb_per_s.value_or(0), 0);
  EXPECT_LT(found.live_gb_per_s.value_or(0), 1000);
}

TEST(PassiveProbe, CostsAreMeasuredOrExplained) {
  const auto probe = PassiveProbe::start({});
  SKIP_WITHOUT(probe, "faults");
  if (!probe->costs_unavailable().empty()) {
    EXPECT_TRUE(probe->costs_unavailable().starts_with("unavailable: "));
    return;
  }
  Child child([] {});
  child.go();
  ASSERT_EQ(child.finish(), 0);
  for (const auto& cost : probe->costs()) {
    if (cost.name != "tp_fault_exit") continue;
    EXPECT_GE(cost.run_count, 1u);
    EXPECT_GT(cost.run_time_ns, 0u);
  }
}

// Kernels without BTF and machines without the tracepoint, as far as this one can play them.
class PassiveFallbacks : public testing::Test {
 protected:
  PassiveOptions options_;
  SubjectContext context_{.options = options_};
};

TEST_F(PassiveFallbacks, MigrationNeedsNoBtf) {
  const auto subject = start_migration(context_, TracepointType::kRawTp);
  if (!subject) GTEST_SKIP() << subject.error().message;
  EXPECT_FALSE((*subject)->programs().attached().empty());
}

TEST_F(PassiveFallbacks, FaultsOfTheMachineAreCountedWithoutPrograms) {
  const KernelBtf no_tracepoints(btf__new_empty());
  context_.btf = &no_tracepoints;
  const auto subject = start_faults(context_, TracepointType::kRawTp);
  if (!subject) GTEST_SKIP() << subject.error().message;
  EXPECT_TRUE((*subject)->programs().attached().empty());
  EXPECT_NE((*subject)->programs().shortfall().find("of groups: unavailable: "), std::string::npos);
  PassiveSample before, after;
  (*subject)->sample(before);
  touch_fresh_pages();
  (*subject)->sample(after);
  EXPECT_GE(after.faults->faults - before.faults->faults, kPages);
}

TEST_F(PassiveFallbacks, MissingTracepointIsTheReason) {
  const KernelBtf no_tracepoints(btf__new_empty());
  context_.btf = &no_tracepoints;
  const auto subject = start_block_io(context_, TracepointType::kTpBtf);
  ASSERT_FALSE(subject);
  EXPECT_EQ(subject.error().message, "unavailable: this kernel has no tracepoint block_rq_insert");
}

}  // namespace
}  // namespace tierpilot
