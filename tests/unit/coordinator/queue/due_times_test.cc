// When tasks are due does not change with the clock; promises: share_clock_test.cc.
#include "coordinator/core/queue/due_times.h"

#include <gtest/gtest.h>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

class DueTimesTest : public CoreTest {
 protected:
  static constexpr int64_t kDeadlineMs = 600'000;
  static TaskSpec due_in_ten_minutes() {
    auto elastic = spec();
    elastic.max_units = 2;
    elastic.training_goal = {.goal = 0.1, .deadline_ms = kDeadlineMs};
    return elastic;
  }
  int64_t left_ms(uint64_t id) {
    return state_->tasks.find(id)->submitted_ms + kDeadlineMs - clock_.wall_ms();
  }
};

TEST_F(DueTimesTest, ADeadlineIsDueWhenItWasWhoeverSetsTheClock) {
  const auto id = submit({due_in_ten_minutes()})->first_task;
  clock_.advance_ns(10'000'000'000);
  const int64_t before_ms = left_ms(id);
  for (const int64_t step_ms : {3'600'000, -7'200'000}) {
    clock_.step_wall_ms(step_ms);
    due_times_->heed();
    EXPECT_EQ(left_ms(id), before_ms);
    flush();
    clock_.step_wall_ms(step_ms);
    restart();
    EXPECT_EQ(left_ms(id), before_ms) << "while the coordinator was down";
  }
}

TEST_F(DueTimesTest, RanksAreDueWithTheirGang) {
  auto gang = due_in_ten_minutes();
  gang.gang.ranks = 2;
  const auto id = submit({gang})->first_task;
  const int64_t before_ms = left_ms(id);
  clock_.step_wall_ms(3'600'000);
  due_times_->heed();
  for (const uint64_t each : {id, id + 1, id + 2}) EXPECT_EQ(left_ms(each), before_ms);
}

TEST_F(DueTimesTest, OfOthersTheTimesStayAsTheyWereTaken) {
  const auto id = submit({spec()})->first_task;
  const int64_t submitted_ms = state_->tasks.find(id)->submitted_ms;
  clock_.step_wall_ms(3'600'000);
  due_times_->heed();
  EXPECT_EQ(state_->tasks.find(id)->submitted_ms, submitted_ms);
}

}  // namespace
}  // namespace tierpilot::testing
