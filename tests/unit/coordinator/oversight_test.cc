// Who decides: modes, the control share, the guard, and what of it a restart remembers.
#include "coordinator/core/decisions/oversight.h"

#include <gmock/gmock.h>

#include <future>
#include <optional>

#include "placing_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Two nodes: "a" is empty and idle, "b" holds the data and is full. The heuristic goes by the time,
// and this dqn thinks the world of whom a transfer would hold up, so that the two differ.
class OversightTest : public PlacingTest {
 protected:
  void begin(const OversightSettings& settings) {
    ExternalityWeights averse{};
    for (size_t i = 0; i < kExternalityCount; ++i)
      if (kExternalityTerms[i].name == "fetch") averse[i] = 1e9;
    start_placing(averse, settings);
    add_dataset("d", 1 << 20, "b");
    add_replica("d", "b");
    state_->registry.find("b")->assigned_units = 2;
  }

  uint64_t submit_one() {
    auto wanted = spec();
    wanted.datasets = {{"d", false}};
    wanted.float_operations = 1e12;
    return submit({wanted})->first_task;
  }
  DecisionRecord decide() {
    const uint64_t id = submit_one();
    dispatcher_->pump();
    EXPECT_TRUE(is_placed(id));
    return recorded(id);
  }
  DecisionRecord recorded(uint64_t id) {
    const auto decisions = decisions_of(id);
    EXPECT_THAT(decisions, SizeIs(1));
    return decisions.empty() ? DecisionRecord{} : decisions.front();
  }
  // A task that is decided by running into the deadline.
  void miss_a_deadline() {
    const uint64_t id = submit_one();
    ring();  // of decisions that were answered
    dispatcher_->pump();
    ASSERT_EQ(timers_.size(), 1u);
    clock_.advance_ns(settings_.decision_deadline_us * 1000);
    ring();
    ASSERT_EQ(task(id).state, TaskState::kAssigned);
    lifecycle_->exited(task(id).node, {id, 1}, success(), nullptr);
    state_->registry.find("b")->assigned_units = 2;
  }
};

TEST_F(OversightTest, EnforcedThePolicyDecides) {
  begin(without_control(PolicyMode::kEnforce));
  const auto record = decide();
  EXPECT_EQ(record.node, "b");
  EXPECT_EQ(record.mode, PolicyMode::kEnforce);
  EXPECT_EQ(record.arm, Arm::kPolicy);
  EXPECT_EQ(record.fallback, "");
  EXPECT_EQ(record.proposed, "");
}

TEST_F(OversightTest, InShadowItIsWrittenDownWhatThePolicyWouldHaveDone) {
  begin(without_control(PolicyMode::kShadow));
  const auto record = decide();
  EXPECT_EQ(record.node, "a");
  EXPECT_EQ(record.proposed, "b");
  EXPECT_EQ(record.arm, Arm::kShadow);
  EXPECT_THAT(record.fallback, HasSubstr("in shadow"));
  EXPECT_EQ(oversight_->tally("dqn").differed, 1u);
  EXPECT_EQ(oversight_->tally("dqn").followed, 0u);
  EXPECT_EQ(state_->scores.of("dqn").fallbacks, 0u) << "it has done nothing wrong";
}

TEST_F(OversightTest, WhatAPolicyWantedBeforeItWasPutInShadowIsNotDone) {
  begin(without_control(PolicyMode::kEnforce));
  const uint64_t id = submit_one();
  dispatcher_->pump();
  ASSERT_TRUE(answers_.wait());
  ASSERT_TRUE(oversight_->set_mode("dqn", PolicyMode::kShadow));
  ASSERT_TRUE(is_placed(id));
  EXPECT_EQ(recorded(id).node, "a");
  EXPECT_EQ(recorded(id).mode, PolicyMode::kShadow);
}

TEST_F(OversightTest, AdviceIsFollowedOnlyWhereTheHeuristicFindsItAboutAsGood) {
  auto settings = without_control(PolicyMode::kAdvise);
  begin(settings);
  const auto refused = decide();
  EXPECT_EQ(refused.node, "a");
  EXPECT_EQ(refused.proposed, "b");
  EXPECT_EQ(refused.arm, Arm::kPolicy) << "measured as the policy's, whoever had the last word";
  EXPECT_THAT(refused.fallback, HasSubstr("% dearer"));
  EXPECT_EQ(oversight_->tally("dqn").followed, 0u);
}

TEST_F(OversightTest, AdviceWithinTheBandIsFollowed) {
  auto settings = without_control(PolicyMode::kAdvise);
  settings.advice_band = 100;
  begin(settings);
  const auto followed = decide();
  EXPECT_EQ(followed.node, "b");
  EXPECT_EQ(followed.fallback, "");
  EXPECT_EQ(oversight_->tally("dqn").followed, 1u);
}

TEST_F(OversightTest, ControlDecisionsDoNotWaitForThePolicy) {
  OversightSettings settings;
  settings.guard.control_share = 1;
  begin(settings);
  const auto first = submit_one();
  const auto second = submit_one();
  dispatcher_->pump();
  EXPECT_EQ(task(first).state, TaskState::kAssigned);
  EXPECT_EQ(task(second).state, TaskState::kAssigned) << "both in one go";
  const auto record = recorded(first);
  EXPECT_EQ(record.node, "a");
  EXPECT_EQ(record.arm, Arm::kControl);
  EXPECT_THAT(record.fallback, HasSubstr("control"));
  EXPECT_EQ(oversight_->tally("dqn").asked, 0u);
  EXPECT_EQ(oversight_->tally("dqn").control, 2u);
}

TEST_F(OversightTest, ASlowPolicyIsDeposedWithAnEventAndStaysSoOverARestart) {
  auto settings = without_control(PolicyMode::kEnforce);
  settings.guard.shadow_share = 0;
  begin(settings);
  std::string deposed;
  oversight_->on_deposed = [&](const std::string& policy, const std::string&) { deposed = policy; };
  for (uint32_t i = 0; i < settings.guard.faults_to_depose; ++i) miss_a_deadline();
  EXPECT_EQ(deposed, "dqn");
  const auto record = decide();
  EXPECT_EQ(record.node, "a");
  EXPECT_EQ(record.arm, Arm::kAlone);
  EXPECT_THAT(record.fallback, HasSubstr("deposed"));
  EXPECT_EQ(oversight_->tally("dqn").faults.at(static_cast<size_t>(DecisionFault::kSlow)), 20u);

  Oversight after(*store_, clock_);
  ASSERT_TRUE(after.begin(settings, {{"dqn", "response"}}));
  ASSERT_TRUE(after.guard("dqn"));
  EXPECT_EQ(after.guard("dqn")->memory().standing, Standing::kDeposed);
  const auto events = after.events("dqn", 10);
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ(events->front().what, "deposed");
  EXPECT_THAT(events->front().why, HasSubstr("20 of its last 20 answers could not be used"));

  ASSERT_TRUE(after.set_mode("dqn", PolicyMode::kAdvise));
  EXPECT_EQ(after.guard("dqn")->memory().standing, Standing::kTrusted);
  flush();
  Oversight later(*store_, clock_);
  ASSERT_TRUE(later.begin(settings, {{"dqn", "response"}}));
  EXPECT_EQ(later.guard("dqn")->memory().mode, PolicyMode::kAdvise)
      << "an operator's word goes before the configuration's";
}

TEST_F(OversightTest, AModeIsAnsweredOnceItIsOnDisk) {
  begin({});
  std::promise<void> disk;
  store_->write(
      [until = std::make_shared<std::future<void>>(disk.get_future())](Db&) -> Status {
        until->wait();
        return {};
      },
      nullptr);
  std::optional<Status> durable;
  const auto set = [&](PolicyMode mode) {
    durable.reset();
    return oversight_->set_mode("dqn", mode, [&](const Status& status) { durable = status; });
  };
  ASSERT_TRUE(set(PolicyMode::kShadow));
  EXPECT_EQ(oversight_->guard("dqn")->memory().mode, PolicyMode::kShadow) << "at once";
  EXPECT_FALSE(durable);
  disk.set_value();
  flush();
  ASSERT_TRUE(durable);
  EXPECT_TRUE(*durable);
  ASSERT_TRUE(set(PolicyMode::kShadow)) << "also as it is already";
  flush();
  EXPECT_TRUE(durable && *durable);
  EXPECT_FALSE(oversight_->set_mode("random", PolicyMode::kShadow, [](auto) { FAIL(); }));
}

TEST_F(OversightTest, WhatCouldNotBeWrittenIsWrittenLater) {
  begin({});
  auto blocking = Db::open((directory_ / "tierpilot.db").string());
  ASSERT_TRUE(blocking);
  ASSERT_TRUE(blocking->execute("ALTER TABLE policy_standings RENAME TO gone"));
  std::optional<Status> durable;
  ASSERT_TRUE(oversight_->set_mode("dqn", PolicyMode::kShadow,
                                   [&](const Status& status) { durable = status; }));
  flush();
  ASSERT_TRUE(durable);
  EXPECT_FALSE(*durable);
  ASSERT_TRUE(blocking->execute("ALTER TABLE gone RENAME TO policy_standings"));
  oversight_->retry();
  flush();
  Oversight after(*store_, clock_);
  ASSERT_TRUE(after.begin({}, {{"dqn", "response"}}));
  EXPECT_EQ(after.guard("dqn")->memory().mode, PolicyMode::kShadow);
}

TEST_F(OversightTest, APolicyThatIsSlowerThanTheHeuristicIsDeposed) {
  begin({});
  for (int i = 0; i < 20'000 && oversight_->guard("dqn")->policy_share() > 0; ++i) {
    auto turn = oversight_->next("dqn");
    turn.estimate_s = 1 + i % 7;
    const double factor = turn.ticket.arm == Arm::kPolicy ? 2 : 1;
    oversight_->rewarded(turn, 0.5);
    oversight_->finished(turn, factor * turn.estimate_s);
  }
  EXPECT_EQ(oversight_->guard("dqn")->memory().standing, Standing::kDeposed);
  EXPECT_THAT(oversight_->guard("dqn")->memory().why, HasSubstr("worse: response"));
  EXPECT_GT(oversight_->measured("dqn")[kResponse].count, 100u);
  EXPECT_NEAR(oversight_->measured("dqn")[kReward].mean, 0.5, 1e-9);
}

TEST_F(OversightTest, AHeuristicHasNoModeAndIsMeasuredAllTheSame) {
  begin({});
  const auto refused = oversight_->set_mode("random", PolicyMode::kShadow);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("does not learn"));
  const auto turn = oversight_->next("random");
  EXPECT_EQ(turn.ticket.arm, Arm::kPolicy);
  oversight_->rewarded(turn, 0.25);
  EXPECT_EQ(oversight_->measured("random")[kReward].count, 1u);
}

TEST_F(OversightTest, AStandingThatCannotBeIsRefused) {
  ASSERT_TRUE(store_);
  store_->write(
      [](Db& db) {
        return db.execute("INSERT INTO policy_standings VALUES('dqn', 9, 0, 0, 0, '')");
      },
      nullptr);
  flush();
  Oversight oversight(*store_, clock_);
  const auto begun = oversight.begin({}, {{"dqn", "response"}});
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, HasSubstr("mode 9"));
}

}  // namespace
}  // namespace tierpilot::testing
