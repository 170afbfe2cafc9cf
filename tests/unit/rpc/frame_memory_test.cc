#include "rpc/stream/frame_memory.h"

#include <gtest/gtest.h>

#include <optional>

namespace tierpilot {
namespace {

using OfPeer = FrameMemory::OfPeer;

struct Frame final : FrameMemory::Claim::Owner {
  Frame(FrameMemory& memory, std::shared_ptr<OfPeer> peer, size_t bytes) {
    claim.emplace(memory, std::move(peer), bytes, *this);
  }
  void granted() override { is_granted = true; }
  void stalled() override { claim.reset(); }

  bool is_granted = false;
  std::optional<FrameMemory::Claim> claim;
};

class Memory : public testing::Test {
 protected:
  static constexpr int64_t kStallMs = 40;

  ~Memory() noexcept override = default;
  // And looks at who waits.
  void pass(int64_t time_ms) {
    clock_.advance_ns(time_ms * 1'000'000);
    loop_.after_ms(kStallMs).wait(loop_.wait_scope());
  }

  EventLoop loop_;
  ManualClock clock_;
  FrameMemory memory_{loop_, 100, kStallMs, clock_};
  const std::shared_ptr<OfPeer> a_ = std::make_shared<OfPeer>(), b_ = std::make_shared<OfPeer>(),
                                c_ = std::make_shared<OfPeer>();
};

TEST_F(Memory, OnePeerGetsHalfAndOthersFindRoomBesideIt) {
  Frame first(memory_, a_, 30), second(memory_, a_, 30), other(memory_, b_, 30);
  EXPECT_TRUE(first.is_granted);
  EXPECT_FALSE(second.is_granted);
  EXPECT_TRUE(other.is_granted);
  EXPECT_EQ(memory_.bytes(), 60u);
  first.claim.reset();
  EXPECT_TRUE(second.is_granted);
  EXPECT_EQ(memory_.bytes(), 60u);
}

TEST_F(Memory, WhereAllIsTakenTheyComeInTheirOrder) {
  Frame a(memory_, a_, 50), b(memory_, b_, 40);
  Frame large(memory_, c_, 45), small(memory_, b_, 5);
  EXPECT_FALSE(large.is_granted);
  EXPECT_FALSE(small.is_granted) << "it would not be past the large one, were that to go on";
  a.claim.reset();
  EXPECT_TRUE(large.is_granted);
  EXPECT_TRUE(small.is_granted);
}

TEST_F(Memory, OneThatIsLargerThanAllComesAlone) {
  Frame huge(memory_, a_, 500);
  EXPECT_TRUE(huge.is_granted);
  Frame other(memory_, b_, 1);
  EXPECT_FALSE(other.is_granted);
  huge.claim.reset();
  EXPECT_TRUE(other.is_granted);
}

TEST_F(Memory, OneThatGoesWhileItWaitsLeavesNothing) {
  Frame first(memory_, a_, 50);
  { Frame waits(memory_, a_, 50); }
  EXPECT_EQ(memory_.waiting_frames(), 0u);
  EXPECT_EQ(a_->waiting_frames, 0u);
  first.claim.reset();
  EXPECT_EQ(memory_.bytes(), 0u);
  EXPECT_EQ(a_->bytes, 0u);
}

TEST_F(Memory, WhoStallsIsEndedWhereThatHelpsOneThatWaits) {
  Frame silent(memory_, a_, 50), beside(memory_, b_, 30), moves(memory_, a_, 0);
  pass(2 * kStallMs);
  EXPECT_TRUE(silent.claim) << "nobody waits";
  moves.claim->came_on();
  Frame waits(memory_, a_, 20);
  pass(kStallMs - 1);
  EXPECT_FALSE(silent.claim);
  EXPECT_TRUE(moves.claim);
  EXPECT_TRUE(beside.claim) << "its peer is another, and there was room";
  EXPECT_TRUE(waits.is_granted);
}

}  // namespace
}  // namespace tierpilot
