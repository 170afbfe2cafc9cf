#include "swap/device/tensor_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace tierpilot::swap {
namespace {

constexpr uint32_t kAll = ~uint32_t{0};
constexpr int64_t kOpenBytes = 256 << 20;  // more at once are no more calls, but commitments
// Libraries of linear algebra read a row behind the last one, and do not use it.
constexpr int64_t kReadBehindBytes = 64 << 20;

int64_t rounded_up(int64_t bytes, int64_t to) {
  return (bytes + to - 1) / to * to;
}

// Blocks of equal size would begin at equal offsets of a page of 4 KiB, and whoever reads one while
// it writes another waits for stores that only look like its own: each begins 17 cache lines
// further.
int64_t block_bytes(int64_t bytes) {
  constexpr int64_t kLine = 64;
  return rounded_up(bytes, kLine) + 17 * kLine;
}

}  // namespace

TensorHeap::TensorHeap(int64_t bytes, int fill) : fill_(fill) {
  bytes = rounded_up(bytes, kOpenBytes);
  reserved_bytes_ = bytes + kPageBytes + kReadBehindBytes;
  // Not to be written: a kernel that overcommits nothing counts only what may be.
  void* const at = mmap(nullptr, static_cast<size_t>(reserved_bytes_), PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return;
  reserved_ = static_cast<std::byte*>(at);
  base_ = reserved_ + (-reinterpret_cast<uintptr_t>(at) & (kPageBytes - 1));
  bytes_ = bytes;
  (void)madvise(base_, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a kernel without says no
}

TensorHeap::~TensorHeap() {
  if (reserved_) munmap(reserved_, static_cast<size_t>(reserved_bytes_));
}

TensorHeap::Range TensorHeap::touched(int64_t begin, int64_t bytes) {
  return {begin / kUnitBytes * kUnitBytes, rounded_up(begin + bytes, kUnitBytes)};
}

TensorHeap::Range TensorHeap::inside(int64_t begin, int64_t bytes) {
  return {rounded_up(begin, kUnitBytes), (begin + bytes) / kUnitBytes * kUnitBytes};
}

template <class Work>
void TensorHeap::each_page(Range range, const Work& work) {
  for (auto at = range.begin; at < range.end;) {
    const auto page = at / kPageBytes;
    const auto end = std::min(range.end, (page + 1) * kPageBytes);
    const auto first = at % kPageBytes / kUnitBytes, count = (end - at) / kUnitBytes;
    work(page, count == 32 ? kAll : ((Units{1} << count) - 1) << first);
    at = end;
  }
}

// A page of which nothing was had comes whole.
int64_t TensorHeap::missing_bytes(int64_t begin, int64_t bytes) const {
  int64_t units = 0;
  each_page(touched(begin, bytes), [&](int64_t page, Units wanted) {
    const auto had = had_[static_cast<size_t>(page)];
    units += had == 0 ? 32 : std::popcount(wanted & ~had);
  });
  return units * kUnitBytes;
}

// Opens addresses, so that a block has room at their end.
bool TensorHeap::grow(int64_t bytes) {
  if (!gaps_.empty()) {
    const auto& [begin, room] = *gaps_.rbegin();
    if (begin + room == open_bytes_) bytes -= room;
  }
  const auto more = std::min(rounded_up(bytes, kOpenBytes), bytes_ - open_bytes_);
  if (more < bytes ||
      mprotect(base_ + open_bytes_, static_cast<size_t>(more), PROT_READ | PROT_WRITE) != 0)
    return false;
  had_.resize(static_cast<size_t>((open_bytes_ + more) / kPageBytes));
  add_gap(gaps_, open_bytes_, more);
  open_bytes_ += more;
  return true;
}

void* TensorHeap::take(int64_t bytes) {
  if (bytes <= 0 || bytes > bytes_) return nullptr;
  bytes = block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  int64_t best = -1, least = std::numeric_limits<int64_t>::max();
  auto from = gaps_.end();
  const auto search = [&] {
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->second < bytes) continue;
      for (const auto begin : {gap->first, gap->first + gap->second - bytes}) {
        const auto missing = missing_bytes(begin, bytes);
        if (missing > least || (missing == least && gap->second >= from->second)) continue;
        best = begin, least = missing, from = gap;
        if (missing == 0 && gap->second == bytes) return true;
      }
    }
    return best >= 0;
  };
  if (!search() && !(grow(bytes) && search())) return nullptr;
  blocks_.emplace(best, bytes);
  const auto [begin, room] = *from;
  gaps_.erase(from);
  if (best > begin) gaps_.emplace(begin, best - begin);
  if (const auto end = best + bytes; end < begin + room) gaps_.emplace(end, begin + room - end);
  each_page(touched(best, bytes), [&](int64_t page, Units wanted) {
    auto& had = had_[static_cast<size_t>(page)];
    had = had == 0 ? kAll : had | wanted;
  });
  return base_ + best;
}

bool TensorHeap::has(const void* data) const {
  return data >= base_ && data < base_ + bytes_;  // neither changes
}

void TensorHeap::give(void* data) {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(static_cast<std::byte*>(data) - base_);
  if (block == blocks_.end()) std::abort();  // as free(3) does: going on would destroy tensors
  if (fill_ != 0) std::memset(data, fill_, static_cast<size_t>(block->second));
  add_gap(gaps_, block->first, block->second);
  blocks_.erase(block);
}

void TensorHeap::return_units(int64_t page, Units units) {
  const auto first = std::countr_zero(units), last = 31 - std::countl_zero(units);
  auto* const at = base_ + page * kPageBytes + first * kUnitBytes;
  madvise(at, static_cast<size_t>((last - first + 1) * kUnitBytes), MADV_DONTNEED);
  had_[static_cast<size_t>(page)] &= ~units;
}

int64_t TensorHeap::trim(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  int64_t trimmed = 0;
  for (auto gap = gaps_.rbegin(); gap != gaps_.rend(); ++gap) {
    const auto begin = rounded_up(gap->first, kPageBytes) / kPageBytes;
    for (auto page = (gap->first + gap->second) / kPageBytes; page-- > begin;) {
      if (trimmed >= bytes) return trimmed;
      const auto had = had_[static_cast<size_t>(page)];
      if (had == 0) continue;
      return_units(page, kAll);
      trimmed += std::popcount(had) * kUnitBytes;
    }
  }
  return trimmed;
}

void TensorHeap::trim_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& [begin, bytes] : gaps_)
    each_page(inside(begin, bytes), [&](int64_t page, Units free) {
      // The kernel may fill the rest of a page that is in pieces (khugepaged), and tells nobody.
      if (free != kAll || had_[static_cast<size_t>(page)] != 0) return_units(page, free);
    });
}

}  // namespace tierpilot::swap
