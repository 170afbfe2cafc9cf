// What a repeated submit is answered.
#include "coordinator/core/queue/intake.h"

#include <gmock/gmock.h>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;

TEST_F(CoreTest, SameRequestIdSameAnswer) {
  auto first = submit({spec("a")}, "once");
  auto again = submit({spec("a")}, "once");
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->first_task, again->first_task);
  restart();
  auto after = submit({spec("a")}, "once");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->first_task, first->first_task);
  EXPECT_EQ(state_->tasks.all().size(), 1u);
  auto other = submit({spec("b")}, "once");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kConflict);
}

TEST_F(CoreTest, ARequestIdIsItsUsers) {
  std::vector<Result<SubmitReceipt>> answers;
  const auto submit_as = [&](const std::string& user, const std::string& name) {
    intake_->submit({user, "same"}, {spec(name)}, [&](auto answer) { answers.push_back(answer); });
  };
  submit_as("ann", "a");
  submit_as("bob", "b");  // while hers is on its way to the disk
  ASSERT_TRUE(posts_.run_until([&] { return answers.size() == 2; }));
  submit_as("cid", "a");  // and after it
  ASSERT_TRUE(posts_.run_until([&] { return answers.size() == 3; }));
  for (const auto& answer : answers) ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(state_->tasks.find(answers[1]->first_task)->user, "bob");
  EXPECT_EQ(state_->tasks.find(answers[2]->first_task)->user, "cid");
  EXPECT_EQ(state_->tasks.all().size(), 3u);
}

TEST_F(CoreTest, ConcurrentRepeatsShareOneCommit) {
  std::vector<uint64_t> answers;
  for (int i = 0; i < 3; ++i)
    intake_->submit({"u", "same"}, {spec("a")}, [&](auto r) { answers.push_back(r->first_task); });
  ASSERT_TRUE(posts_.run_until([&] { return answers.size() == 3; }));
  EXPECT_THAT(answers, ElementsAre(answers[0], answers[0], answers[0]));
  EXPECT_EQ(state_->tasks.all().size(), 1u);
}

}  // namespace
}  // namespace tierpilot::testing
