#include "tests/bench/passive/workloads.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/sysroot.h"

namespace tierpilot {
namespace {

constexpr size_t kFaultPages = 4096, kShuttlePages = 4096;
const auto kPageBytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));

char* map_small_pages(size_t count) {
  void* memory = ::mmap(nullptr, count * kPageBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  ::madvise(memory, count * kPageBytes, MADV_NOHUGEPAGE);
  return static_cast<char*>(memory);
}

void touch(char* memory, size_t count) {
  for (size_t i = 0; i < count; ++i) static_cast<volatile char*>(memory)[i * kPageBytes] = 1;
}

}  // namespace

double seconds_by(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double fault_pages(clockid_t clock, double seconds) {
  const double end = seconds_by(clock) + seconds;
  double done = 0;
  while (seconds_by(clock) < end) {
    char* memory = map_small_pages(kFaultPages);
    touch(memory, kFaultPages);
    ::munmap(memory, kFaultPages * kPageBytes);
    done += kFaultPages;
  }
  return done;
}

Result<std::unique_ptr<Shuttle>> Shuttle::make() {
  const auto nodes = Sysroot().read_id_list("/sys/devices/system/node/has_memory");
  if (!nodes) return tl::unexpected(nodes.error());
  if (nodes->size() < 2)
    return fail(ErrorCode::kUnavailable, "one NUMA node: no page can move between nodes");
  return std::unique_ptr<Shuttle>(new Shuttle(*nodes));
}

Shuttle::Shuttle(std::vector<int> nodes)
    : nodes_(std::move(nodes)), memory_(map_small_pages(kShuttlePages)) {
  touch(memory_, kShuttlePages);
  for (size_t i = 0; i < kShuttlePages; ++i) pages_.push_back(memory_ + i * kPageBytes);
  move_all(nodes_[at_], kShuttlePages);
}

Shuttle::~Shuttle() {
  ::munmap(memory_, kShuttlePages * kPageBytes);
}

bool Shuttle::move_all(int node, size_t batch) {
  const std::vector<int> targets(batch, node);
  std::vector<int> where(batch, -1);
  for (size_t at = 0; at < pages_.size(); at += batch) {
    const size_t count = std::min(batch, pages_.size() - at);
    if (::syscall(SYS_move_pages, 0, count, pages_.data() + at, targets.data(), where.data(),
                  MPOL_MF_MOVE) < 0)
      return false;
  }
  return true;
}

double Shuttle::move_pages(clockid_t clock, double seconds, size_t batch) {
  const double end = seconds_by(clock) + seconds;
  double done = 0;
  while (seconds_by(clock) < end) {
    at_ = 1 - at_;
    if (!move_all(nodes_[at_], batch)) return -1;
    done += static_cast<double>(pages_.size());
  }
  return done;
}

}  // namespace tierpilot
