// What the judge of promises sees, and how a share holds a job's work back.
#include <gtest/gtest.h>

#include "tests/dst/judge/judge.h"
#include "tests/dst/work.h"

namespace tierpilot::dst {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

class PromisesTest : public ::testing::Test {
 protected:
  PromisesTest() {
    task_.id = 1;
    task_.attempt = 1;
    task_.share = UnitShare{};
  }
  // Of 10 s, asked for at 1 s and taken by 2 s.
  void take(bool on_trial) {
    TaskSpec spec;
    spec.share.promise_ms = 10'000;
    spec.share.promise_on_trial = on_trial;
    judge_.promises().acknowledged(1, spec, kSecondNs, 2 * kSecondNs);
  }
  void tell(const std::string& words) { judge_.promises().told(task_, words); }
  void end(double at_s, const std::string& words) {
    judge_.promises().done({1, 1}, 0, static_cast<int64_t>(at_s * 1e9));
    task_.state = TaskState::kSucceeded;
    tell(words);
  }
  std::string found() const { return judge_.verdict() ? judge_.verdict()->invariant : ""; }

  Judge judge_{{}};
  Task task_;
};

TEST_F(PromisesTest, WhatWasMadeStaysSoUntilTheEnd) {
  take(false);
  for (const auto* words : {"made", "made", "kept: done"}) tell(words);
  EXPECT_EQ(found(), "");
  tell("broken: done");
  EXPECT_EQ(found(), "undone-promise");
}

TEST_F(PromisesTest, WhatWasMadeAsItWasTakenGoesOnNoTrial) {
  take(false);
  tell("on trial");
  EXPECT_EQ(found(), "undone-promise");
}

TEST_F(PromisesTest, ATrialEndsOnce) {
  take(true);
  for (const auto* words : {"on trial", "not made: it takes too long for it"}) tell(words);
  EXPECT_EQ(found(), "");
  tell("on trial");
  EXPECT_EQ(found(), "undone-promise");
}

TEST_F(PromisesTest, APromiseIsNotForgotten) {
  take(true);
  tell("");
  EXPECT_EQ(found(), "undone-promise");
}

TEST_F(PromisesTest, WhatIsToldOfItsEndIsTrue) {
  take(false);
  end(11.6, "kept: done");
  EXPECT_EQ(found(), "") << "it was taken at 1.1 s at the earliest, or so";
}

TEST_F(PromisesTest, WhoWasLateHasNotKeptIt) {
  take(false);
  end(13, "kept: done");
  EXPECT_EQ(found(), "false-verdict");
}

TEST_F(PromisesTest, WhoWasInTimeHasNotBrokenIt) {
  take(false);
  end(9, "broken: done");
  EXPECT_EQ(found(), "false-verdict");
}

TEST_F(PromisesTest, WhereNothingFailedItIsKept) {
  bool is_undisturbed = false;
  judge_.promises().is_undisturbed_since = [&](int64_t) { return is_undisturbed; };
  take(false);
  end(20, "broken: done");
  EXPECT_EQ(found(), "");
  is_undisturbed = true;
  TaskSpec other;
  other.share.promise_ms = 10'000;
  judge_.promises().acknowledged(2, other, 0, 0);
  task_.id = 2;
  judge_.promises().done({2, 1}, 0, 20 * kSecondNs);
  tell("broken: done");
  EXPECT_EQ(found(), "broken-promise");
}

TEST(Work, TakesAsMuchLongerAsItHasLessThanItNeeds) {
  Work work(0, 0, 4 * kSecondNs, 400);
  EXPECT_EQ(work.left_ns(kSecondNs), 3 * kSecondNs) << "nobody holds it back yet";
  work.give(kSecondNs, 100);
  EXPECT_EQ(work.left_ns(kSecondNs), 12 * kSecondNs);
  EXPECT_EQ(work.done_ns(5 * kSecondNs), 2 * kSecondNs);
  EXPECT_EQ(work.used_ns(5 * kSecondNs), 800'000'000);
  EXPECT_EQ(work.waited_ns(5 * kSecondNs), 3 * kSecondNs);
  work.give(5 * kSecondNs, 1000);
  EXPECT_EQ(work.left_ns(5 * kSecondNs), 2 * kSecondNs) << "more than it needs does nothing";
}

}  // namespace
}  // namespace tierpilot::dst
