#include "rpc/stream/frame_memory.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace tierpilot {
namespace {

constexpr int64_t kLooksWithinStall = 4;

}  // namespace

FrameMemory::Claim::Claim(FrameMemory& memory, std::shared_ptr<OfPeer> peer, size_t bytes,
                          Owner& owner)
    : memory_(memory),
      peer_(std::move(peer)),
      bytes_(bytes),
      owner_(owner),
      came_on_ns_(memory.clock_.boot_ns()),
      place_(memory_.waiting_.insert(memory_.waiting_.end(), this)) {
  ++peer_->waiting_frames;
  memory_.grant_waiting();
  if (is_granted_ || std::exchange(memory_.watches_, true)) return;
  memory_.watch_ = memory_.watch().eagerlyEvaluate(nullptr);
}

FrameMemory::Claim::~Claim() {
  (is_granted_ ? memory_.granted_ : memory_.waiting_).erase(place_);
  if (is_granted_) {
    memory_.bytes_ -= bytes_;
    peer_->bytes -= bytes_;
  } else {
    --peer_->waiting_frames;
  }
  memory_.grant_waiting();
}

void FrameMemory::Claim::came_on() {
  came_on_ns_ = memory_.clock_.boot_ns();
}

// Alone it gets what it needs, whatever the limit.
bool FrameMemory::has_share_for(const Claim& claim) const {
  return claim.peer_->bytes == 0 || claim.peer_->bytes + claim.bytes_ <= limit_bytes_ / 2;
}

// In the order in which they came, but for peers that have their share.
FrameMemory::Claim* FrameMemory::next_to_grant() const {
  std::set<const OfPeer*> have_their_share;
  for (Claim* claim : waiting_) {
    if (have_their_share.contains(claim->peer_.get())) continue;
    if (has_share_for(*claim))
      return bytes_ == 0 || bytes_ + claim->bytes_ <= limit_bytes_ ? claim : nullptr;
    have_their_share.insert(claim->peer_.get());
  }
  return nullptr;
}

void FrameMemory::grant(Claim& claim) {
  granted_.splice(granted_.end(), waiting_, claim.place_);
  claim.is_granted_ = true;
  claim.came_on_ns_ = clock_.boot_ns();
  --claim.peer_->waiting_frames;
  claim.peer_->bytes += claim.bytes_;
  bytes_ += claim.bytes_;
  claim.owner_.granted();
}

// Whoever is told may end claims, or make some.
void FrameMemory::grant_waiting() {
  if (std::exchange(grants_, true)) return;
  while (Claim* next = next_to_grant()) grant(*next);
  grants_ = false;
}

// Of those only whose end would help one that waits.
void FrameMemory::end_stalled() {
  const bool all_is_taken = std::any_of(waiting_.begin(), waiting_.end(),
                                        [this](const Claim* one) { return has_share_for(*one); });
  const int64_t least_ns = clock_.boot_ns() - stall_ms_ * 1'000'000;
  std::vector<Claim::Owner*> stalled;
  for (const Claim* claim : granted_)
    if (claim->came_on_ns_ <= least_ns && (all_is_taken || claim->peer_->waiting_frames > 0))
      stalled.push_back(&claim->owner_);
  for (auto* owner : stalled) owner->stalled();
}

kj::Promise<void> FrameMemory::watch() {
  return loop_.after_ms(std::max<int64_t>(stall_ms_ / kLooksWithinStall, 1))
      .then([this]() -> kj::Promise<void> {
        end_stalled();
        if (!waiting_.empty()) return watch();
        watches_ = false;
        return kj::READY_NOW;
      });
}

}  // namespace tierpilot
