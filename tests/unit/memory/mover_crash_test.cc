// A mover that is killed at any moment leaves its target's memory whole.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/sysroot.h"
#include "daemon/memory/mover/mover.h"

namespace tierpilot {
namespace {

constexpr size_t kBytes = 16 << 20;
constexpr size_t kWords = kBytes / sizeof(uint64_t);

uint64_t pattern(size_t word) {
  return word * 0x9e3779b97f4a7c15ULL + 1;
}

// With one node every page is there already, and no move would ever be tried.
class EverythingIsFarAway final : public PageKernel {
 public:
  int move_pages(pid_t pid, std::span<void* const> pages, int node,
                 std::span<int> status) override {
    return system_page_kernel().move_pages(pid, pages, node, status);
  }
  int locate_pages(pid_t pid, std::span<void* const> pages, std::span<int> status) override {
    const int err = system_page_kernel().locate_pages(pid, pages, status);
    for (int& node : status) node += node >= 0 ? 1 : 0;
    return err;
  }
  Result<std::vector<uint64_t>> huge_pages(pid_t pid, uint64_t start, uint64_t end) override {
    return system_page_kernel().huge_pages(pid, start, end);
  }
};

std::vector<int> memory_nodes() {
  return Sysroot().read_id_list("/sys/devices/system/node/has_memory").value_or(std::vector{0});
}

std::string kernel_settings() {
  std::string all;
  for (const char* path :
       {"/proc/sys/kernel/numa_balancing", "/proc/sys/vm/zone_reclaim_mode",
        "/sys/kernel/mm/numa/demotion_enabled", "/sys/kernel/mm/transparent_hugepage/enabled"})
    all += Sysroot().read(path).value_or("none") + "\n";
  return all;
}

[[noreturn]] void move_for_ever(pid_t target, const void* memory) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  EverythingIsFarAway one_node;
  SystemPacer pacer;
  const auto nodes = memory_nodes();
  PageKernel& kernel = nodes.size() > 1 ? system_page_kernel() : one_node;
  Mover mover(kernel, pacer, {.batch_bytes = 256 << 10, .attempts = 1});
  const auto start = reinterpret_cast<uint64_t>(memory);
  for (size_t round = 0;; ++round)
    (void)mover.move({.pid = target,
                      .start = start,
                      .end = start + kBytes,
                      .nodes = {nodes[round % nodes.size()]}});
}

TEST(MoverCrash, KilledInMidMoveItLeavesMemoryWhole) {
  const auto settings = kernel_settings();
  auto* memory = static_cast<uint64_t*>(
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  const pid_t target = ::getpid();
  std::vector<int> probe(1);
  void* first = memory;
  if (system_page_kernel().locate_pages(target, {&first, 1}, probe) < 0)
    GTEST_SKIP() << "move_pages may not be used here";
  // Not before fork: copy on write would make every page shared for a while.
  for (int kill_after_ms : {1, 3, 10, 30, 50}) {
    const pid_t mover = ::fork();
    ASSERT_GE(mover, 0);
    if (mover == 0) {
      while (::getppid() != target) ::_exit(1);
      move_for_ever(target, memory);
    }
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(kill_after_ms);
    uint64_t round = static_cast<uint64_t>(kill_after_ms) << 32;
    do {
      ++round;
      for (size_t i = 0; i < kWords; i += 64) memory[i] = pattern(i) ^ round;
    } while (std::chrono::steady_clock::now() < deadline);
    ::kill(mover, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(mover, &status, 0), mover);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);
    size_t wrong = 0;
    for (size_t i = 0; i < kWords; i += 64) wrong += memory[i] != (pattern(i) ^ round);
    ASSERT_EQ(wrong, 0U) << "after a kill at " << kill_after_ms << " ms";
  }
  EXPECT_EQ(kernel_settings(), settings);
  ::munmap(memory, kBytes);
}

}  // namespace
}  // namespace tierpilot
