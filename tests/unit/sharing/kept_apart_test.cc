// Who slowed a job with a promise more than was thought does not come back to it to be ended again.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

class Apart : public testing::Test {
 protected:
  // Slower than thought: what is left of it seems more while the other one is there.
  LiveJob promised(uint64_t id, double left_s) const {
    LiveJob job = running(id, kSensitive, 400, 400);
    job.sharer.name = "train";
    job.left_s = job.left_upper_s = left_s;
    job.promise_left_s = 1250;
    return job;
  }
  static WaitingJob one(const std::string& name) {
    auto job = waiting(kBestEffort, 400, 300);
    job.sharer.name = name;
    return job;
  }
  LiveUnit alone(uint64_t id = 1, double left_s = 1000) const {
    return unit_with({promised(id, left_s)});
  }
  void be_ended() {
    auto other = running(2, kBestEffort, 400, 400);
    other.sharer.name = "load";
    const auto unit = unit_with({promised(1, 1340), other});
    ASSERT_TRUE(policy_->adjust(unit).preempts(2));
  }
  bool starts_on(const LiveUnit& unit, const std::string& name) {
    const bool starts = policy_->place({{unit}}, one(name)).has_value();
    EXPECT_EQ(policy_->refusal(unit, one(name)).empty(), starts);
    return starts;
  }

  Kept thought_{.ln = std::log(0.9)};
  std::unique_ptr<SharePolicy> policy_ =
      policy("share", [this](const Sharer&, const Sharer&) { return thought_; });
};

TEST_F(Apart, WhileThatOneRuns) {
  EXPECT_TRUE(starts_on(alone(), "load"));
  be_ended();
  EXPECT_FALSE(starts_on(alone(), "load"));
  EXPECT_EQ(policy_->refusal(alone(), one("load")),
            "one like it slowed task 1 more than its promise bears");
  EXPECT_TRUE(starts_on(alone(), "other"));
  EXPECT_TRUE(starts_on(alone(3), "load"));
  EXPECT_TRUE(starts_on(unit_with({}), "load"));
}

TEST_F(Apart, UntilThePairIsMeasured) {
  be_ended();
  thought_.by = KeptBy::kOwnEffects;
  thought_.measured = 3;
  EXPECT_FALSE(starts_on(alone(), "load")) << "other pairs were";
  thought_.by = KeptBy::kPair;
  EXPECT_TRUE(starts_on(alone(), "load"));
  be_ended();
  EXPECT_FALSE(starts_on(alone(), "load")) << "it was measured wrong";
}

// The more often it was ended, the more has to have changed.
TEST_F(Apart, UntilThatOneNeedsLessOfItsSpeed) {
  be_ended();
  EXPECT_FALSE(starts_on(alone(1, 970), "load"));
  EXPECT_TRUE(starts_on(alone(1, 950), "load"));
  be_ended();
  EXPECT_FALSE(starts_on(alone(1, 950), "load"));
  EXPECT_TRUE(starts_on(alone(1, 860), "load"));
}

TEST_F(Apart, FromOneThatHasAPromise) {
  be_ended();
  auto unit = alone();
  unit.jobs[0].promise_left_s = kNoPromise;
  EXPECT_TRUE(starts_on(unit, "load"));
}

}  // namespace
}  // namespace tierpilot::sharing
