#include "tests/bench/placement/fast_room.h"

#include <fmt/format.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/bytes.h"

#include "tests/bench/placement/program_parts.h"
namespace tierpilot::bench {
namespace {

constexpr uint64_t kChunkBytes = 16 * kMiB;
constexpr int kTries = 40;

}  // namespace

Result<uint64_t> FastRoom::watermark_bytes() const {
  const auto text = sysroot_.read("/proc/zoneinfo");
  if (!text) return tl::unexpected(text.error());
  std::istringstream lines(*text);
  const std::string ours = fmt::format("Node {},", node_);
  bool here = false;
  uint64_t pages = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Node ")) here = line.starts_with(ours);
    uint64_t low = 0;
    if (here && std::sscanf(line.c_str(), " low %lu", &low) == 1) pages += low;
    // Of each zone for allocations that would rather have a higher one: the last number.
    if (const auto comma = line.rfind(','); here && line.find("protection:") != std::string::npos)
      pages += std::strtoull(line.c_str() + std::min(comma, line.size() - 1) + 1, nullptr, 10);
  }
  return pages * kPageBytes;
}

Result<uint64_t> FastRoom::free_bytes() const {
  const auto text = sysroot_.read(fmt::format("/sys/devices/system/node/node{}/meminfo", node_));
  if (!text) return tl::unexpected(text.error());
  const auto at = text->find("MemFree:");
  if (at == std::string::npos)
    return fail(ErrorCode::kInvalid, fmt::format("node {}: no MemFree in its meminfo", node_));
  return std::strtoull(text->c_str() + at + std::strlen("MemFree:"), nullptr, 10) << 10;
}

Status FastRoom::leave(uint64_t bytes) {
  const auto watermark = watermark_bytes();
  if (!watermark) return tl::unexpected(watermark.error());
  const uint64_t target = bytes + *watermark;
  // What is given back is not free at once: CPUs keep lists of free pages of their own.
  for (int i = 0; i < kTries; ++i) {
    const auto free = free_bytes();
    if (!free) return tl::unexpected(free.error());
    if (*free > target + kMiB / 2) {
      if (auto status = hold(*free - target, MPOL_BIND); !status) return status;
    } else if (*free + kMiB / 2 < target) {
      if (held_.empty())
        return fail(ErrorCode::kExhausted, fmt::format("node {}: {} are free, {} are needed", node_,
                                                       format_bytes(*free), format_bytes(target)));
      let_go(target - *free);
      ::usleep(10'000);
    } else {
      return {};
    }
  }
  return fail(ErrorCode::kExhausted,
              fmt::format("node {}: its free memory does not settle at {}: something else uses it",
                          node_, format_bytes(target)));
}

Status FastRoom::hold(uint64_t bytes, int policy) {
  bytes &= ~(kPageBytes - 1);
  while (bytes > 0) {
    const uint64_t chunk = std::min(bytes, kChunkBytes);
    void* start =
        ::mmap(nullptr, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return fail_errno(errno, "memory that keeps a node small");
    held_.push_back({start, chunk});
    const unsigned long mask = 1UL << node_;
    // A part of a huge page that is given back does not come free.
    ::madvise(start, chunk, MADV_NOHUGEPAGE);
    if (::mbind(start, chunk, policy, &mask, 64, 0) != 0 || ::mlock(start, chunk) != 0)
      return fail_errno(errno, fmt::format("memory that keeps node {} small", node_));
    bytes -= chunk;
  }
  return {};
}

void FastRoom::let_go(uint64_t bytes) {
  while (bytes > 0 && !held_.empty()) {
    Held& last = held_.back();
    const uint64_t part = std::min((bytes + kPageBytes - 1) & ~(kPageBytes - 1), last.bytes);
    ::munmap(static_cast<char*>(last.start) + last.bytes - part, part);
    last.bytes -= part;
    bytes -= std::min(bytes, part);
    if (last.bytes == 0) held_.pop_back();
  }
}

void FastRoom::release() {
  let_go(UINT64_MAX / 2);
}

}  // namespace tierpilot::bench
