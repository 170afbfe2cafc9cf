// Programs that a governor attaches and detaches: what they see, and what the kernel says besides.
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/probe/passive_nodes.h"

namespace tierpilot {
namespace {

// Calls that are said to be so dear that five a second are all that is allowed. A guest makes some
// 60 of a page that goes to and fro. It is touched before each: Linux 6.1 finds no page that waits
// for a NUMA hint fault, and moves it no more.
class PassiveTurns : public PassiveNodes {
 protected:
  void start_dear() { start_migration({.cpu_share = 0.2, .migration_call_ns = 40'000'000}); }

  size_t move_round(Pages& pages) {
    pages.touch();
    size_t arrived = pages.move_each_to(far_);
    pages.touch();
    arrived += pages.move_each_to(near_);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return arrived;
  }

  // Moves single pages to and fro until `done` says so of the sample.
  bool move_until(Pages& pages, const std::function<bool(const MigrationStats&)>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      arrived_ += move_round(pages);
      seen_ = *probe_->sample().migration;
      if (done(seen_)) return true;
    }
    ADD_FAILURE() << arrived_ << " calls made, " << seen_.total.calls << " of them and in "
                  << seen_.watched_time_share << " of the time watched";
    return false;
  }
  // Until nothing more is watched, and then until it is again.
  bool move_through_a_pause(Pages& pages) {
    uint64_t before = 0;
    const auto pausing = [&](const MigrationStats& now) {
      return std::exchange(before, now.total.calls) == now.total.calls;
    };
    return move_until(pages, pausing) &&
           move_until(pages, [&](const MigrationStats& now) { return now.total.calls > before; });
  }

  uint64_t arrived_ = 0;
  MigrationStats seen_;
};

TEST_F(PassiveTurns, CallsThatAreTooManyAreWatchedInTurnsAndCountedByTheKernel) {
  Pages pages(1, near_);
  pages.unbind();
  start_dear();
  if (IsSkipped()) return;
  probe_->track_group(::getpgrp());
  for (int turn = 0; turn < 3; ++turn) ASSERT_TRUE(move_through_a_pause(pages)) << turn;
  EXPECT_LT(seen_.watched_time_share, 0.9);
  ASSERT_TRUE(seen_.machine && seen_.watched_pages_share);
  EXPECT_GE(seen_.machine->moved, arrived_);
  EXPECT_LE(seen_.machine->moved, arrived_ * 105 / 100);
  EXPECT_NEAR(*seen_.watched_pages_share,
              static_cast<double>(seen_.total.pages_moved) / seen_.machine->moved, 0.01);
  EXPECT_LT(*seen_.watched_pages_share, 0.9);
  const auto mine = probe_->group_io(::getpgrp()).migration;
  ASSERT_TRUE(mine);
  EXPECT_LT(mine->watched_pages_share.value_or(1), 0.9);
}

// But for the one call that this thread may be in when the programs come back.
TEST_F(PassiveTurns, ATurnsEdgesLeaveNoCallWithoutItsNodes) {
  constexpr uint64_t kTurns = 3;
  Pages pages(1, near_);
  pages.unbind();
  start_dear();
  if (IsSkipped()) return;
  for (uint64_t turn = 0; turn < kTurns; ++turn) ASSERT_TRUE(move_through_a_pause(pages)) << turn;
  EXPECT_LE(seen_.untimed_calls, kTurns);
  EXPECT_EQ(seen_.lost_calls, 0u);
  EXPECT_LE(pair(std::nullopt, std::nullopt).total.calls, kTurns);
}

TEST_F(PassiveTurns, WhenCallsGetFewTheyAreAllWatchedAgain) {
  Pages pages(1, near_);
  pages.unbind();
  start_dear();
  if (IsSkipped()) return;
  ASSERT_TRUE(move_through_a_pause(pages));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  size_t watched = 0, moved = 1;
  while (watched < moved && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::seconds(4));
    const auto before = pair(near_, far_).total.pages_moved;
    pages.touch();
    moved = pages.move_to(far_);
    watched = pair(near_, far_).total.pages_moved - before;
    pages.touch();
    pages.move_to(near_);
  }
  EXPECT_EQ(watched, moved);
}

}  // namespace
}  // namespace tierpilot
