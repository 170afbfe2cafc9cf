// What jobs of a unit have from a look on: never more than all of it, promises that can be kept
// first.
#include <gtest/gtest.h>

#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

LiveJob promised(uint64_t id, uint32_t milli, uint32_t need, double left_s, double promise_left_s) {
  LiveJob job = running(id, kSensitive, milli, need);
  job.left_s = job.left_upper_s = left_s;
  job.promise_left_s = promise_left_s;
  return job;
}

TEST(Adjust, WhoHasNoPromiseGivesWayToOneThatWasMade) {
  const auto unit = unit_with({promised(1, 600, 1000, 95, 100), running(2, kSensitive, 400, 400)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_GE(milli_of(unit, adjustment, 1), 900U);
  EXPECT_GE(milli_of(unit, adjustment, 2), 1U) << "it goes on";
}

TEST(Adjust, WhoIsOnTrialDoesToo) {
  auto trial = promised(2, 500, 1000, 100, 300);
  trial.on_trial = true;
  const auto unit = unit_with({promised(1, 500, 1000, 95, 100), trial});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_GE(milli_of(unit, adjustment, 1), 900U);
}

TEST(Adjust, ManyWithoutPromisesAllGoOn) {
  std::vector<LiveJob> jobs{promised(1, 50, 1000, 95, 100)};
  for (uint64_t id = 2; id < 21; ++id) jobs.push_back(running(id, kSensitive, 50, 1000));
  const auto unit = unit_with(std::move(jobs));
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  for (const auto& job : unit.jobs) EXPECT_GE(milli_of(unit, adjustment, job.id), 1U) << job.id;
}

TEST(Adjust, ManyGiveUpALittleForOneThatGrows) {
  const auto unit =
      unit_with({promised(1, 504, 1000, 32.4, 100), running(2, kBestEffort, 248, 1000),
                 running(3, kBestEffort, 248, 1000)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_EQ(milli_of(unit, adjustment, 1), 540U);
}

TEST(Adjust, APromiseThatIsLostTakesNothingFromOneThatCanBeKept) {
  const auto unit = unit_with({promised(1, 400, 900, 200, -5), promised(2, 600, 900, 100, 170)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_LE(100 * 900.0 / milli_of(unit, adjustment, 2), 170);
}

bool is_in_time(const LiveUnit& unit, const Adjustment& adjustment, const LiveJob& job) {
  return job.left_s * job.need_milli <= job.promise_left_s * milli_of(unit, adjustment, job.id);
}

TEST(Adjust, NobodyIsAheadOfAPromiseAtTheCostOfAnother) {
  const auto long_one = promised(1, 706, 974, 4800, 8283),
             short_one = promised(2, 257, 264, 527, 1122);
  for (const auto& unit : {unit_with({long_one, short_one}), unit_with({short_one, long_one})}) {
    const auto adjustment = policy("share")->adjust(unit);
    expect_within(unit, adjustment);
    for (const auto& job : unit.jobs) EXPECT_TRUE(is_in_time(unit, adjustment, job)) << job.id;
  }
}

TEST(Adjust, OfTwoThatCannotBothBeKeptTheFirstIs) {
  const auto unit = unit_with({promised(1, 500, 1000, 80, 100), promised(2, 500, 1000, 80, 100)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_TRUE(is_in_time(unit, adjustment, unit.jobs[0]));
}

}  // namespace
}  // namespace tierpilot::sharing
