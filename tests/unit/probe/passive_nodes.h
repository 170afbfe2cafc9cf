// A passive probe, and pages to move, on a machine with two NUMA nodes and a kernel that lets
// programs run at its functions; skips elsewhere.
#pragma once

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/sysroot.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot {

inline const auto kPageBytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

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
    for (size_t i = 0; i < count_; ++i) {
      volatile char& byte = static_cast<volatile char*>(memory_)[i * kPageBytes];
      byte = static_cast<char>(byte + 1);
    }
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

  // Likewise, a page in a call.
  size_t move_each_to(int node) {
    size_t arrived = 0;
    for (size_t i = 0; i < count_; ++i) {
      void* page = memory_ + i * kPageBytes;
      int where = -1;
      ::syscall(SYS_move_pages, 0, 1ul, &page, &node, &where, MPOL_MF_MOVE);
      arrived += where == node;
    }
    return arrived;
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

  // Unless told otherwise, however many calls there are, they are all watched.
  void start(const std::string& subject, PassiveOptions options = {.cpu_share = 0}) {
    options.subjects = {subject};
    options.event_pages = 1;
    probe_ = PassiveProbe::start(options);
    for (const auto& state : probe_->subjects())
      if (state.subject == subject && !state.on) GTEST_SKIP() << state.reason;
  }

  // Skips where pairs are not told apart.
  void start_migration(const PassiveOptions& options = {.cpu_share = 0}) {
    start("migration", options);
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

  OwnedMigrations cgroup_migrations(uint64_t id) {
    const auto found = probe_->cgroup_memory(id).migration;
    EXPECT_TRUE(found);
    return found.value_or(OwnedMigrations{});
  }

  int near_ = 0, far_ = 0;
  std::unique_ptr<PassiveProbe> probe_;
};

}  // namespace tierpilot
