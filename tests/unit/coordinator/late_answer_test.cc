// The policy thinks on a thread of its own, so that the cluster may have changed when it is heard.
// Whatever has: no task is kept back for ever, none is placed twice, and one is placed at once when
// what it is kept back for is gone.
#include <gmock/gmock.h>

#include <future>
#include <tuple>

#include "holding_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::SizeIs;

class LateAnswerTest : public HoldingTest {
 protected:
  // The policy wants it to be kept back for "b", and nobody has heard that yet.
  uint64_t ask_about_one() {
    const uint64_t id = submit_reader();
    dispatcher_->pump();
    EXPECT_TRUE(answers_.wait());
    return id;
  }
  void hear_one() {
    bool heard = false;
    EXPECT_TRUE(answers_.run_until([&] { return std::exchange(heard, true); }));
  }
  void pass_the_deadline() {
    clock_.advance_ns(settings_.decision_deadline_us * 1000);
    ring();
  }
  void depose() {
    for (uint32_t i = 0; i < oversight_->settings().guard.faults_to_depose; ++i)
      oversight_->answered(oversight_->next("dqn"), DecisionFault::kSlow);
    ASSERT_EQ(oversight_->guard("dqn")->memory().standing, Standing::kDeposed);
  }
};

// What takes the reason to wait away, before the answer is heard or after.
struct Change {
  const char* name;
  void (*happens)(class ChangedClusterTest&);
};

class ChangedClusterTest : public LateAnswerTest,
                           public ::testing::WithParamInterface<std::tuple<Change, bool>> {
 public:
  void another_policy() { ASSERT_TRUE(host_->use("least-loaded")); }
  void mode(PolicyMode mode) { ASSERT_TRUE(oversight_->set_mode("dqn", mode)); }
  void deposed() { depose(); }
  void node_lost() { lifecycle_->give_up(*state_->registry.find("b"), "it went"); }
  void node_disconnected() { membership_->disconnected(tickets_["b"]); }
  void node_anew() {
    node_lost();
    join("b", 8);
  }
  void data_evicted() { membership_->replica_changed("b", "d", {1, kData, false, false}); }
  void data_rewritten() {
    TaskExit exit = success();
    exit.written = {{"d", 2, kData}};
    EXPECT_TRUE(this->exit("a", writer_, exit));
  }

 protected:
  // What else there is: an idle node, another one that has the data and can take no task, and a
  // task that writes it.
  void begin_among_others() {
    begin();
    join("c");
    auto writer = spec();
    writer.datasets = {{"d", true}};
    writer_ = assign(submit({writer})->first_task, "a");
    add_replica("d", "archive");
  }

  AttemptId writer_;
};

TEST_P(ChangedClusterTest, TheTaskIsPlacedAtOnceAndOnce) {
  const auto& [change, late] = GetParam();
  begin_among_others();
  const uint64_t id = late ? ask_about_one() : keep_one_back();
  change.happens(*this);
  dispatcher_->pump();
  ASSERT_TRUE(is_placed(id));
  EXPECT_EQ(task(id).attempt, 1u);
  EXPECT_THAT(decisions_of(id), SizeIs(1));
  EXPECT_TRUE(state_->held.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, ChangedClusterTest,
    ::testing::Combine(
        ::testing::Values(
            Change{"AnotherPolicy", [](ChangedClusterTest& t) { t.another_policy(); }},
            Change{"Shadow", [](ChangedClusterTest& t) { t.mode(PolicyMode::kShadow); }},
            Change{"Advise", [](ChangedClusterTest& t) { t.mode(PolicyMode::kAdvise); }},
            Change{"Deposed", [](ChangedClusterTest& t) { t.deposed(); }},
            Change{"NodeLost", [](ChangedClusterTest& t) { t.node_lost(); }},
            Change{"NodeDisconnected", [](ChangedClusterTest& t) { t.node_disconnected(); }},
            Change{"NodeAnew", [](ChangedClusterTest& t) { t.node_anew(); }},
            Change{"DataEvicted", [](ChangedClusterTest& t) { t.data_evicted(); }},
            Change{"DataRewritten", [](ChangedClusterTest& t) { t.data_rewritten(); }}),
        ::testing::Bool()),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) +
             (std::get<1>(test.param) ? "BeforeTheAnswer" : "AfterIt");
    });

TEST_F(LateAnswerTest, ATaskCancelledMeanwhileIsNotKept) {
  begin();
  const uint64_t id = ask_about_one();
  lifecycle_->cancel(id, nullptr);
  hear_one();
  EXPECT_TRUE(state_->held.empty());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
  EXPECT_THAT(decisions_of(id), SizeIs(0));
}

TEST_F(LateAnswerTest, AfterItsDeadlineTheAnswerChangesNothing) {
  begin();
  const uint64_t id = ask_about_one();
  pass_the_deadline();
  ASSERT_EQ(task(id).node, "a") << "the heuristic has placed it";
  hear_one();
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
  EXPECT_TRUE(state_->held.empty());
  EXPECT_THAT(decisions_of(id), SizeIs(1));
}

TEST_F(LateAnswerTest, AnAnswerAboutAnEarlierAttemptKeepsNothingBack) {
  begin();
  const uint64_t id = ask_about_one();
  pass_the_deadline();
  lifecycle_->give_up(*state_->registry.find("a"), "it went");
  ASSERT_EQ(task(id).state, TaskState::kQueued) << "to be tried again";
  hear_one();
  EXPECT_TRUE(state_->held.empty());
  EXPECT_TRUE(exit("b", busy_[0], success()));
  dispatcher_->pump();
  ASSERT_TRUE(is_placed(id));
  EXPECT_EQ(task(id).attempt, 2u);
}

TEST_F(LateAnswerTest, ATaskWhoseTimeIsUpMeanwhileIsPlaced) {
  begin();
  const uint64_t id = keep_one_back();
  state_->held.wake(id);
  dispatcher_->pump();
  ASSERT_TRUE(answers_.wait());
  clock_.advance_ns(60'000'000'000);
  hear_one();
  ring();
  ASSERT_TRUE(is_placed(id));
  EXPECT_EQ(task(id).node, "a");
  EXPECT_TRUE(state_->held.empty());
}

TEST_F(LateAnswerTest, WhenTheNodeHasRoomMeanwhileTheTaskGoesThere) {
  begin();
  const uint64_t id = ask_about_one();
  EXPECT_TRUE(exit("b", busy_[0], success()));
  ASSERT_TRUE(is_placed(id));
  EXPECT_EQ(task(id).node, "b");
}

TEST_F(LateAnswerTest, APolicyThatWasReplacedByOneThatHoldsToo) {
  begin();
  ASSERT_TRUE(host_->use("delay-finish"));
  has_room_soon();
  const uint64_t first = keep_one_back();
  EXPECT_TRUE(exit("b", busy_[0], success()));
  decide(first);
  ASSERT_TRUE(host_->use("dqn"));
  state_->registry.find("b")->assigned_operations = 1e10;
  const uint64_t id = ask_about_one();
  ASSERT_TRUE(host_->use("delay-finish"));
  ASSERT_TRUE(is_placed(id)) << "delay-finish would not wait so long";
  EXPECT_EQ(decisions_of(id).front().policy, "delay-finish");
}

TEST_F(LateAnswerTest, WhoAnswersInAnothersPlaceIsNotHeard) {
  begin();
  std::promise<void> goes_on;
  host_->decide(UINT64_MAX, std::make_shared<const View>(),
                [released = goes_on.get_future().share()](auto) { released.wait(); });
  const uint64_t id = submit_reader();
  dispatcher_->pump();
  ASSERT_TRUE(host_->use("random"));
  goes_on.set_value();
  ASSERT_TRUE(is_placed(id));
  const auto decisions = decisions_of(id);
  ASSERT_THAT(decisions, SizeIs(1));
  EXPECT_EQ(decisions.front().policy, "random");
}

}  // namespace
}  // namespace tierpilot::testing
