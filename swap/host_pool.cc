#include "swap/host_pool.h"

#include <fmt/format.h>

namespace tierpilot::swap {

HostPool::HostPool(std::vector<MeasuredTier> tiers) : tiers_(std::move(tiers)) {
  for (const auto& tier : tiers_) rooms_.push_back({Extents(tier.tier->capacity_bytes())});
}

Block HostPool::take(size_t tier, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& room = rooms_[tier];
  if (room.errors > 0) return {};
  const auto offset = room.extents.take(bytes);
  return offset ? Block{tier, *offset, bytes} : Block{};
}

Result<Block> HostPool::write(const std::byte* data, int64_t bytes, Copier& copier) {
  std::string reason = "every tier is full";
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const auto block = take(tier, bytes);
    if (!block.exists()) continue;
    const auto status = copier.out(*tiers_[tier].tier, block.offset, data, bytes);
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
  return copier.in(*tiers_[block.tier].tier, block.offset, data, block.bytes);
}

void HostPool::free(const Block& block) {
  if (!block.exists()) return;
  const std::lock_guard lock(mutex_);
  rooms_[block.tier].extents.give_back(block.offset, block.bytes);
}

std::vector<TierUse> HostPool::use() const {
  const std::lock_guard lock(mutex_);
  std::vector<TierUse> use;
  for (const auto& room : rooms_)
    use.push_back({room.extents.used_bytes(), room.extents.peak_bytes(), room.errors});
  return use;
}

}  // namespace tierpilot::swap
