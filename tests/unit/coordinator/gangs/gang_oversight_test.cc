// Who decides where gangs run: modes, faults, the guard, and what is told of it.
#include <gmock/gmock.h>

#include "guarded_gangs.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(GuardedGangs, EnforcedThePolicyDecidesAndTheHeuristicsChoiceIsTold) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  const auto id = submit_and_place();
  EXPECT_TRUE(has_bad_unit(id));
  EXPECT_EQ(task(id).policy, "gang/unsoundest");
  const auto told = decision(id);
  EXPECT_EQ(told.policy, "gang/unsoundest");
  EXPECT_EQ(told.mode, PolicyMode::kEnforce);
  EXPECT_EQ(told.arm, Arm::kPolicy);
  EXPECT_EQ(told.fallback, "");
  EXPECT_EQ(told.proposed, "");
  ASSERT_TRUE(told.gang);
  EXPECT_NE(told.gang->heuristic, "");
  EXPECT_GT(told.gang->expected_h, told.gang->heuristic_h);
  EXPECT_EQ(told.gang->standing, "trusted");
  EXPECT_EQ(state_->scores.of("gang/unsoundest").decisions, 1u);
}

TEST_F(GuardedGangs, InShadowThePolicyIsAskedAndTheHeuristicDecides) {
  begin("unsoundest", PolicyMode::kShadow, without_control());
  const auto id = submit_and_place();
  EXPECT_FALSE(has_bad_unit(id));
  const auto told = decision(id);
  EXPECT_EQ(told.arm, Arm::kShadow);
  EXPECT_EQ(told.proposed, "b");
  EXPECT_THAT(told.fallback, HasSubstr("in shadow"));
  EXPECT_EQ(told.gang->expected_h, told.gang->heuristic_h);
  EXPECT_EQ(oversight().tally("gang/unsoundest").differed, 1u);
  EXPECT_EQ(oversight().tally("gang/unsoundest").followed, 0u);
}

TEST_F(GuardedGangs, AdviceIsTakenOnlyWhereTheHeuristicFindsItAboutAsGood) {
  begin("unsoundest", PolicyMode::kAdvise, without_control());
  const auto refused = submit_and_place();
  EXPECT_FALSE(has_bad_unit(refused));
  EXPECT_THAT(decision(refused).fallback, HasSubstr("% more hours"));
  EXPECT_EQ(decision(refused).proposed, "b");
  EXPECT_EQ(decision(refused).arm, Arm::kPolicy) << "measured as the policy's";
}

TEST_F(GuardedGangs, AdviceWithinTheBandIsTaken) {
  auto settings = without_control();
  settings.advice_band = 1e9;
  begin("unsoundest", PolicyMode::kAdvise, settings);
  const auto followed = submit_and_place();
  EXPECT_TRUE(has_bad_unit(followed));
  EXPECT_EQ(decision(followed).fallback, "");
  EXPECT_EQ(oversight().tally("gang/unsoundest").followed, 1u);
}

TEST_F(GuardedGangs, TheControlShareIsTheHeuristics) {
  OversightSettings settings;
  settings.guard.control_share = 1;
  begin("unsoundest", PolicyMode::kEnforce, settings);
  const auto id = submit_and_place();
  EXPECT_FALSE(has_bad_unit(id));
  EXPECT_EQ(decision(id).arm, Arm::kControl);
  EXPECT_THAT(decision(id).fallback, HasSubstr("control"));
  EXPECT_EQ(oversight().tally("gang/unsoundest").asked, 0u);
}

TEST_F(GuardedGangs, WithoutTheGuardThePolicyDecidesAlone) {
  OversightSettings settings;
  settings.guard.on = false;
  settings.guard.control_share = 1;
  begin("unsoundest", PolicyMode::kEnforce, settings);
  EXPECT_TRUE(has_bad_unit(submit_and_place()));
}

TEST_F(GuardedGangs, AHeuristicHasNoMode) {
  begin("first-fit", PolicyMode::kShadow, without_control());
  const auto id = submit_and_place();
  EXPECT_FALSE(decision(id).mode);
  EXPECT_EQ(decision(id).gang->standing, "");
  EXPECT_EQ(rank(id, 0).node, "a");
  EXPECT_FALSE(oversight().set_mode("gang/first-fit", PolicyMode::kShadow));
}

class FaultyGangPolicy : public GuardedGangs,
                         public ::testing::WithParamInterface<std::pair<const char*, const char*>> {
};

TEST_P(FaultyGangPolicy, IsReplacedByTheHeuristicAndItsFaultCounts) {
  const auto& [policy, what] = GetParam();
  begin(policy, PolicyMode::kEnforce, without_control());
  const auto first = submit_and_place();  // whom the next one finds there
  ASSERT_EQ(task(first).state, TaskState::kAssigned);
  start_all(first);
  const auto id = submit_and_place(2);
  ASSERT_EQ(task(id).state, TaskState::kAssigned);
  EXPECT_FALSE(has_bad_unit(id));
  EXPECT_THAT(decision(id).fallback, HasSubstr(what));
  uint64_t faults = 0;
  for (size_t i = 1; i < kDecisionFaults; ++i)
    faults += oversight().tally("gang/" + std::string(policy)).faults[i];
  EXPECT_GE(faults, 1u);
  EXPECT_GE(state_->scores.of("gang/" + std::string(policy)).fallbacks, 1u);
}

INSTANTIATE_TEST_SUITE_P(GangPolicies, FaultyGangPolicy,
                         ::testing::Values(std::pair{"none", "it chose places for 0 ranks"},
                                           std::pair{"same", "twice"},
                                           std::pair{"busy", "which is not free"},
                                           std::pair{"throwing", "no idea"}),
                         [](const auto& info) { return std::string(info.param.first); });

TEST_F(GuardedGangs, ThatErrsTooOftenIsDeposedAlsoOverARestart) {
  auto settings = without_control();
  settings.guard.faults_to_depose = 3;
  settings.guard.shadow_share = 0;
  begin("throwing", PolicyMode::kEnforce, settings);
  for (int i = 0; i < 3; ++i) {
    const auto id = submit_and_place();
    start_all(id);
    end(id, 0, success());
    flush();
  }
  EXPECT_EQ(guard("throwing").memory().standing, Standing::kDeposed);
  begin("throwing", PolicyMode::kEnforce, settings);
  EXPECT_EQ(guard("throwing").memory().standing, Standing::kDeposed);
  const auto id = submit_and_place();
  EXPECT_EQ(decision(id).arm, Arm::kAlone);
  EXPECT_THAT(decision(id).fallback,
              StartsWith("policy 'gang/throwing' is deposed: 3 of its last"));
  EXPECT_THAT(decision(id).gang->standing, StartsWith("deposed: 3 of its last"));
  const auto events = oversight().events("gang/throwing", 9);
  ASSERT_TRUE(events && !events->empty());
  EXPECT_EQ(events->front().what, "deposed");
}

TEST_F(GuardedGangs, AnOperatorsModeOutlivesTheCoordinator) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  ASSERT_TRUE(oversight().set_mode("gang/unsoundest", PolicyMode::kShadow));
  flush();
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  EXPECT_EQ(guard("unsoundest").memory().mode, PolicyMode::kShadow);
}

TEST_F(GuardedGangs, AnotherPolicyDecidesOnceItIsChosen) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  ASSERT_TRUE(gangs_->policies().use("first-fit"));
  EXPECT_EQ(gangs_->policies().active(), "first-fit");
  const auto id = submit_and_place();
  EXPECT_EQ(decision(id).policy, "gang/first-fit");
  const auto unknown = gangs_->policies().use("dqn");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("expected-time"));
  EXPECT_EQ(gangs_->policies().active(), "first-fit") << "as it was";
}

TEST_F(GuardedGangs, WhoseWeightsAreMissingCannotBeChosen) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  settings_.gang_policies = &gang::hosted_placers();
  settings_.gang_policy = gang::kGangHeuristic;
  settings_.gang_weights = "/nonexistent";
  again();
  const auto refused = gangs_->policies().use("ac");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("/nonexistent"));
  EXPECT_EQ(gangs_->policies().active(), gang::kGangHeuristic);
}

}  // namespace
}  // namespace tierpilot::testing
