// What left the device, in the fastest tier that has room.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "swap/device/compute_device.h"
#include "swap/tiers/tier_set.h"

namespace tierpilot::swap {

struct Block {
  size_t tier = 0;
  int64_t offset = 0, bytes = 0;  // 0 bytes: none
  bool exists() const { return bytes > 0; }
};

struct TierUse {
  int64_t used_bytes = 0, peak_bytes = 0;
  int64_t errors = 0;  // writes that failed: after the first one nothing more is put there
};

// From any thread.
class HostPool {
 public:
  explicit HostPool(std::shared_ptr<TierSet> tiers);

  // Spills to the next tier where one has no room, or fails. kExhausted: none has room.
  Result<Block> write(const std::byte* data, int64_t bytes, Copier& copier);
  Status read(const Block& block, std::byte* data, Copier& copier);
  void free(const Block& block);

  const std::vector<MeasuredTier>& tiers() const { return set_->tiers(); }
  std::vector<TierUse> use() const;
  // Of the tier that copies go to first.
  Link link() const { return tiers().front().link(); }

 private:
  struct Room {
    int64_t used_bytes = 0, peak_bytes = 0;
    int64_t errors = 0;
    std::string failure{};  // the last one's reason
  };
  Block take(size_t tier, int64_t bytes);

  const std::shared_ptr<TierSet> set_;
  mutable std::mutex mutex_;
  std::vector<Room> rooms_;
};

}  // namespace tierpilot::swap
