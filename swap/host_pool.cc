#include "swap/host_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

HostPool::HostPool(std::shared_ptr<TierSet> tiers)
    : set_(std::move(tiers)), rooms_(set_->tiers().size()) {}

Block HostPool::take(size_t tier, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& room = rooms_[tier];
  if (room.errors > 0) return {};
  const auto offset = set_->take(tier, bytes);
  if (!offset) return {};
  room.used_bytes += Extents::aligned(bytes);
  room.peak_bytes = std::max(room.peak_bytes, room.used_bytes);
  return {tier, *offset, bytes};
}

Result<Block> HostPool::write(const std::byte* data, int64_t bytes, Copier& copier) {
  std::string reason = "every tier is full";
  for (size_t tier = 0; tier < tiers().size(); ++tier) {
    const auto block = take(tier, bytes);
    if (!block.exists()) continue;
    const auto status = copier.out(*tiers()[tier].tier, block.offset, data, bytes);
    if (status) return block;
    free(block);
    reason = status.error().message;
    if (status.error().code == ErrorCode::kUnavailable) continue;  // of the device, perhaps for now
    const std::lock_guard lock(mutex_);
    ++rooms_[tier].errors;
    rooms_[tier].failure = reason;
  }
  const std::lock_guard lock(mutex_);
  for (const auto& room : rooms_)
    if (room.errors > 0) reason = room.failure;
  return fail(ErrorCode::kExhausted, fmt::format("{} bytes found no room: {}", bytes, reason));
}

Status HostPool::read(const Block& block, std::byte* data, Copier& copier) {
  return copier.in(*tiers()[block.tier].tier, block.offset, data, block.bytes);
}

void HostPool::free(const Block& block) {
  if (!block.exists()) return;
  const std::lock_guard lock(mutex_);
  set_->give_back(block.tier, block.offset, block.bytes);
  rooms_[block.tier].used_bytes -= Extents::aligned(block.bytes);
}

std::vector<TierUse> HostPool::use() const {
  const std::lock_guard lock(mutex_);
  std::vector<TierUse> use;
  for (const auto& room : rooms_) use.push_back({room.used_bytes, room.peak_bytes, room.errors});
  return use;
}

}  // namespace tierpilot::swap
