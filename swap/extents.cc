#include "swap/extents.h"

#include <algorithm>
#include <iterator>

namespace tierpilot::swap {

namespace {
int64_t rounded(int64_t bytes) {
  return (bytes + Extents::kAlignment - 1) / Extents::kAlignment * Extents::kAlignment;
}
}  // namespace

Extents::Extents(int64_t bytes) {
  bytes = bytes / kAlignment * kAlignment;
  if (bytes > 0) free_.emplace(0, bytes);
}

std::optional<int64_t> Extents::take(int64_t bytes) {
  bytes = rounded(bytes);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [offset, room] = *at;
    if (room < bytes) continue;
    free_.erase(at);
    if (room > bytes) free_.emplace(offset + bytes, room - bytes);
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return offset;
  }
  return {};
}

void Extents::give_back(int64_t offset, int64_t bytes) {
  bytes = rounded(bytes);
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
