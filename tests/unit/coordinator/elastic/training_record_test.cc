#include "coordinator/core/elastic/training_record.h"

#include <gtest/gtest.h>

#include "policies/quality/predictor.h"

namespace tierpilot {
namespace {

class LossLeft : public ::testing::Test {
 protected:
  // A loss that falls by the iteration's inverse, reported 40 times.
  void report(uint64_t iterations) {
    for (uint64_t i = 1; i <= 40; ++i) {
      JobPoint point;
      point.at_ms = static_cast<int64_t>(i) * 1000;
      point.iteration = 10 * i;
      point.iterations = iterations;
      point.loss.value = 0.2 + 2.0 / static_cast<double>(i);
      record_.add(point, 1);
    }
  }
  TrainingRecord record_{quality::make_default_predictor(), {}};
};

TEST_F(LossLeft, IsNotKnownBeforeTheLossChanges) {
  EXPECT_FALSE(record_.loss_left());
  JobPoint point;
  point.iteration = 1;
  point.loss.value = 1.0;
  record_.add(point, 1);
  EXPECT_FALSE(record_.loss_left());
}

// Its last report is its best, as long as it learns at all.
TEST_F(LossLeft, IsAboveWhatIsForetoldOfTheEnd) {
  report(4000);  // ten times as far it would be 0.205
  const auto left = record_.loss_left();
  ASSERT_TRUE(left);
  EXPECT_GT(*left, 0.005);
  EXPECT_LT(*left, 0.05);
}

TEST_F(LossLeft, IsOfATrainingWithoutAnEndAboveWhatComesMuchLater) {
  report(0);
  EXPECT_GT(record_.loss_left().value_or(0), 0.005);
}

TEST_F(LossLeft, IsNothingAtTheEnd) {
  report(400);
  EXPECT_NEAR(record_.loss_left().value_or(1), 0, 0.005);
}

}  // namespace
}  // namespace tierpilot
