// Tasks that the policy keeps back for a full node (policies/held_tasks.h), in the coordinator.
#include <gmock/gmock.h>

#include "holding_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(HoldingTest, ATaskWaitsForTheNodeThatHasItsDataAndGoesThere) {
  begin();
  const uint64_t id = keep_one_back();
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_THAT(task(id).reason, HasSubstr("'b'"));

  EXPECT_TRUE(exit("b", busy_[0], success()));
  decide(id);
  EXPECT_EQ(task(id).node, "b");
  EXPECT_TRUE(state_->held.empty());
}

TEST_F(HoldingTest, AtTheLatestItGoesElsewhereWhenThatWouldHaveBeenDone) {
  begin();
  const uint64_t id = keep_one_back();
  clock_.advance_ns(60'000'000'000);
  ring();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, OthersPassIt) {
  begin();
  const uint64_t held = keep_one_back();
  const uint64_t other = submit({spec()})->first_task;
  decide(other);
  EXPECT_EQ(task(other).node, "a");
  EXPECT_TRUE(state_->held.waits(held));
}

TEST_F(HoldingTest, ACancelledOneIsForgotten) {
  begin();
  const uint64_t id = keep_one_back();
  lifecycle_->cancel(id, nullptr);
  flush();
  EXPECT_TRUE(state_->held.empty());
  ring();
}

TEST_F(HoldingTest, AnotherPolicyPlacesItAtOnce) {
  begin();
  const uint64_t id = keep_one_back();
  ASSERT_TRUE(host_->use("least-loaded"));
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, OnlyAPolicyThatDecidesMayHold) {
  begin(PolicyMode::kShadow);
  const uint64_t id = submit_reader();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

TEST_F(HoldingTest, AnOperatorMayForbidIt) {
  settings_.hold_tasks = false;
  restart();
  begin();
  const uint64_t id = submit_reader();
  decide(id);
  EXPECT_EQ(task(id).node, "a");
}

}  // namespace
}  // namespace tierpilot::testing
