// Somebody sets the clock of the coordinator's machine: promises are due when they were.
#include <gmock/gmock.h>

#include "coordinator/core/sharing/promise_words.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ShareClockTest = ShareKeeperTest;

TEST_F(ShareClockTest, APromiseIsDueWhenItWasWhoeverSetsTheClock) {
  for (const int64_t step_ms : {3'600'000, -7'200'000}) {
    const auto id = accept(promised("p" + std::to_string(step_ms), 400, 60, 200));
    pump();
    pass(10);
    const auto left_s = keeper_->share_of(id)->promise_left_s;
    ASSERT_TRUE(left_s);
    clock_.step_wall_ms(step_ms);
    pass(1);
    EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, *left_s - 1, 0.01);
    restart_coordinator();
    EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, *left_s - 1, 0.01) << "it is on disk";
    join_sharing("n1", 1, {{id, 1}});
    ASSERT_TRUE(exit("n1", {id, 1}, success()));
  }
}

// Before anybody has noticed.
TEST_F(ShareClockTest, WhoComesAfterTheClockWasSetIsDueAsLongAfterItCame) {
  clock_.step_wall_ms(3'600'000);
  const auto id = accept(promised("p", 400, 60, 200));
  pump();
  pass(1);
  EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, 199, 0.01);
  EXPECT_LT(clock_.wall_ms() - task(id).started_ms, 2'000);
}

TEST_F(ShareClockTest, WhoIsOnItsWayToTheDiskWhenTheClockIsSetIsDueAsLongAfterItCame) {
  hold_disk();
  std::optional<uint64_t> id;
  intake_->submit({"tester", "held"}, {promised("p", 400, 60, 200)},
                  [&](const auto& receipt) { id = receipt->first_task; });
  clock_.step_wall_ms(-7'200'000);
  tick(1);
  release_disk();
  ASSERT_TRUE(id);
  EXPECT_NEAR(*keeper_->share_of(*id)->promise_left_s, 199, 0.01);
  restart_coordinator();
  EXPECT_NEAR(*keeper_->share_of(*id)->promise_left_s, 199, 0.01) << "it is on disk";
}

TEST_F(ShareClockTest, WhoEndsAfterTheClockWasSetHasKeptItsPromise) {
  for (const int64_t step_ms : {3'600'000, -7'200'000}) {
    const auto id = accept(promised("p" + std::to_string(step_ms), 400, 60, 200));
    pump();
    pass(10);
    clock_.step_wall_ms(step_ms);
    ASSERT_TRUE(exit("n1", {id, 1}, success()));
    EXPECT_THAT(promise_words(*stored(id), clock_.wall_ms()), HasSubstr("kept: done after 10.0 s"));
  }
}

TEST_F(ShareClockTest, ASetClockIsNotForgottenForAFullDisk) {
  const auto id = accept(promised("p", 400, 60, 200));
  pump();
  pass(10);
  const auto left_s = keeper_->share_of(id)->promise_left_s;
  set_disk_full(true);
  clock_.step_wall_ms(3'600'000);
  pass(1);
  set_disk_full(false);
  retry();
  restart_coordinator();
  EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, *left_s - 1, 0.01);
}

TEST_F(ShareClockTest, AClockThatWasSetIsNoticedAfterAKillBeforeItsDiskHadThat) {
  for (const bool written : {true, false}) {
    const auto id = accept(promised("p" + std::to_string(written), 400, 60, 200));
    pump();
    pass(10);
    const auto left_s = keeper_->share_of(id)->promise_left_s;
    if (!written) set_disk_full(true);
    clock_.step_wall_ms(-3'600'000);
    pass(1);
    if (!written) set_disk_full(false);
    restart_coordinator();
    EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, *left_s - 1, 0.01);
    join_sharing("n1", 1, {{id, 1}});
    ASSERT_TRUE(exit("n1", {id, 1}, success()));
  }
}

TEST_F(ShareClockTest, AClockThatWasSetWhileTheCoordinatorWasDownIsNoticedButForAReboot) {
  for (const bool rebooted : {false, true}) {
    const auto id = accept(promised("p" + std::to_string(rebooted), 400, 60, 200));
    pump();
    pass(10);
    const auto left_s = keeper_->share_of(id)->promise_left_s;
    for (int i = 0; i < 2; ++i) {
      if (rebooted) clock_.reboot();
      clock_.step_wall_ms(rebooted ? 20'000 : 7'200'000);
      restart_coordinator();
    }
    EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, *left_s - (rebooted ? 40 : 0), 0.01)
        << "after a reboot it is taken for right";
    clock_.step_wall_ms(7'200'000);
    restart_coordinator();
    EXPECT_NEAR(*keeper_->share_of(id)->promise_left_s, *left_s - (rebooted ? 40 : 0), 0.01);
    join_sharing("n1", 1, {{id, 1}});
    ASSERT_TRUE(exit("n1", {id, 1}, success()));
  }
}

}  // namespace
}  // namespace tierpilot::testing
