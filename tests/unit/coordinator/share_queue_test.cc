// How many of those that wait for shares are looked at, and for how long.
#include "base/bytes.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

class ShareQueueTest : public ShareKeeperTest {
 protected:
  // The unit of n1 has nothing left for anybody.
  ShareQueueTest() {
    accept(shared("full", 1000));
    pump();
  }
  // Names tell nothing of them; `unlike` differ in their memory.
  uint64_t accept_many(size_t count, bool unlike) {
    std::vector<TaskSpec> many;
    for (size_t i = 0; i < count; ++i) {
      many.push_back(shared("task" + std::to_string(i), 700));
      if (unlike) many.back().memory_bytes = 16 * kMiB + i;
    }
    const auto receipt = submit(many);
    EXPECT_TRUE(receipt);
    return receipt ? receipt->first_task : 0;
  }
  uint64_t accept_unlike(size_t count) { return accept_many(count, true); }
  void look() {
    keeper_->tick();
    flush();
  }
};

TEST_F(ShareQueueTest, OfManyThatAreAlikeEachIsToldWhyItWaits) {
  const auto first = accept_many(600, false);
  pump();
  for (uint64_t id = first; id < first + 600; ++id)
    ASSERT_THAT(task(id).reason, HasSubstr("it is to have 700 thousandths")) << id;
}

TEST_F(ShareQueueTest, ManyThatAreAlikeHideNobody) {
  accept_many(600, false);
  const auto other = accept(shared("other", 300));  // beside one of them
  join_sharing("n2", 1);
  pump();
  EXPECT_EQ(task(other).state, TaskState::kRunning);
}

TEST_F(ShareQueueTest, WhoIsUnlikeByAnythingIsLookedAtItself) {
  join_sharing("n2", 1);
  accept(shared("fills", 700));
  pump();
  const auto much = accept(shared("a", 900)), less = accept(shared("a", 200));
  pump();
  EXPECT_EQ(task(much).state, TaskState::kQueued);
  EXPECT_EQ(task(less).state, TaskState::kRunning) << task(less).reason;
}

TEST_F(ShareQueueTest, ANameThatTellsSomethingMakesUnlike) {
  const auto known = accept(shared("known", 0));
  join_sharing("n2", 1);
  pump();
  run_at_three_tenths(known);
  ASSERT_TRUE(exit(task(known).node, {known, 1}, success()));
  accept(shared("fills", 600));
  pump();
  const auto whole = accept(shared("unknown", 0)), again = accept(shared("known", 0));
  pump();
  EXPECT_EQ(task(whole).state, TaskState::kQueued) << "it is taken for a whole unit";
  EXPECT_EQ(task(again).state, TaskState::kRunning) << task(again).reason;
}

TEST_F(ShareQueueTest, ALookEndsAndTheNextOneGoesOn) {
  const auto first = accept_unlike(200);
  clock_.let_each_reading_take_ns(kMs);
  look();
  size_t waiting_behind = 0;
  for (uint64_t id = first; id < first + 200; ++id)
    waiting_behind += task(id).reason.find("they are many") != std::string::npos;
  EXPECT_GT(waiting_behind, 100U) << "a look takes some 50 ms";
  EXPECT_LT(waiting_behind, 200U);
  const auto last = accept(shared("last", 300));  // beside one of them
  join_sharing("n2", 1);
  bool looked_at_first_again = false;
  for (int i = 0; i < 100 && task(last).state == TaskState::kQueued; ++i) {
    clock_.advance_ns(200 * kMs);
    look();
    looked_at_first_again =
        looked_at_first_again || task(first).reason.find("they are many") == std::string::npos;
  }
  EXPECT_NE(task(last).state, TaskState::kQueued) << "those before it never fit";
}

TEST_F(ShareQueueTest, ALatencySensitiveTaskIsLookedAtHoweverLongItTakes) {
  accept_unlike(200);
  clock_.let_each_reading_take_ns(kMs);
  std::vector<TaskSpec> sensitive_ones;
  for (int i = 0; i < 60; ++i)
    sensitive_ones.push_back(sensitive("sensitive" + std::to_string(i), 1000));
  const auto first = submit(sensitive_ones)->first_task;
  look();
  for (uint64_t id = first; id < first + 60; ++id)
    EXPECT_EQ(task(id).reason.find("they are many"), std::string::npos) << id;
}

TEST_F(ShareQueueTest, ALongLookIsFollowedByARest) {
  accept_unlike(200);
  clock_.let_each_reading_take_ns(kMs);
  look();
  clock_.let_each_reading_take_ns(0);
  const auto other = accept(shared("other", 300));
  join_sharing("n2", 1);
  look();
  EXPECT_EQ(task(other).state, TaskState::kQueued);
  clock_.advance_ns(2000 * kMs);
  look();
  EXPECT_NE(task(other).state, TaskState::kQueued);
}

}  // namespace
}  // namespace tierpilot::testing
