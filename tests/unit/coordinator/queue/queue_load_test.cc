// How much is taken of one user and in all.
#include "coordinator/core/queue/queue_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class QueueLimitsTest : public CoreTest {
 protected:
  void limit(const QueueLimits& limits) {
    settings_.queue_limits = limits;
    restart();
  }
  void expect_refused(const Result<SubmitReceipt>& answer, const std::string& key) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kExhausted);
    EXPECT_THAT(answer.error().message, HasSubstr(key));
  }
  Result<SubmitReceipt> submit_as(const std::string& user, std::vector<TaskSpec> specs) {
    std::optional<Result<SubmitReceipt>> answer;
    intake_->submit({user, user + std::to_string(++requests_)}, std::move(specs),
                    [&](auto result) { answer = std::move(result); });
    EXPECT_TRUE(posts_.run_until([&] { return answer.has_value(); }));
    return *answer;
  }
};

TEST_F(QueueLimitsTest, OneUserLeavesRoomForOthers) {
  limit({.tasks = 5, .tasks_per_user = 3});
  ASSERT_TRUE(submit_as("a", {spec(), spec(), spec()}));
  expect_refused(submit_as("a", {spec()}), "max_tasks_per_user");
  ASSERT_TRUE(submit_as("b", {spec(), spec()}));
  expect_refused(submit_as("c", {spec()}), "queue.max_tasks ");
}

TEST_F(QueueLimitsTest, WhatEndsMakesRoomAndWhatIsRepeatedNeedsNone) {
  limit({.tasks_per_user = 2});
  ASSERT_TRUE(submit({spec("x"), spec("y", {"x"})}, "once"));
  EXPECT_TRUE(submit({spec("x"), spec("y", {"x"})}, "once"));
  expect_refused(submit({spec()}), "max_tasks_per_user");
  restart();
  expect_refused(submit({spec()}), "max_tasks_per_user");
  join("n1");
  ASSERT_TRUE(exit("n1", assign(1, "n1"), failure(1)));  // and with it the one that waits
  EXPECT_TRUE(submit({spec(), spec()}));
}

TEST_F(QueueLimitsTest, SubmitsUnderWayCount) {
  limit({.tasks_per_user = 2});
  int taken = 0, refused = 0;
  for (int i = 0; i < 5; ++i)
    intake_->submit({"a", "r" + std::to_string(i)}, {spec()},
                    [&](const auto& answer) { answer ? ++taken : ++refused; });
  ASSERT_TRUE(posts_.run_until([&] { return taken + refused == 5; }));
  EXPECT_EQ(taken, 2);
  EXPECT_EQ(refused, 3);
}

TEST_F(QueueLimitsTest, LargeTasksCountByTheirBytes) {
  limit({.bytes_per_user = 100'000});
  auto large = spec();
  large.argv.push_back(std::string(60'000, 'x'));
  ASSERT_TRUE(submit({large}));
  expect_refused(submit({large}), "max_bytes_per_user");
  EXPECT_TRUE(submit({spec()}));
}

}  // namespace
}  // namespace tierpilot::testing
