#include "swap/extents.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tierpilot::swap {

Extents::Extents(int64_t bytes) {
  bytes = bytes / kAlignment * kAlignment;
  if (bytes > 0) free_.emplace(0, bytes);
}

std::optional<int64_t> Extents::take(int64_t bytes) {
  bytes = aligned(bytes);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const int64_t offset = at->first, room = at->second;
    if (room < bytes) continue;
    auto gap = free_.extract(at);  // takes no memory
    if (room > bytes) {
      gap.key() = offset + bytes;
      gap.mapped() = room - bytes;
      free_.insert(std::move(gap));
    }
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return offset;
  }
  return {};
}

void Extents::give_back(int64_t offset, int64_t bytes) {
  bytes = aligned(bytes);
  used_ -= bytes;
  add_gap(free_, offset, bytes);
}

void add_gap(Gaps& gaps, int64_t offset, int64_t bytes) {
  const auto [at, _] = gaps.emplace(offset, bytes);
  if (const auto after = std::next(at); after != gaps.end() && offset + bytes == after->first) {
    at->second += after->second;
    gaps.erase(after);
  }
  if (at == gaps.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != offset) return;
  before->second += at->second;
  gaps.erase(at);
}

}  // namespace tierpilot::swap
