// What becomes of decisions about gangs: when a try is measured, and that bad policies are found
// out.
#include <gmock/gmock.h>

#include "coordinator/core/gangs/checkpoints.h"
#include "guarded_gangs.h"

namespace tierpilot::testing {
namespace {

constexpr int64_t kHour_ms = 3'600'000;

class GangGoodput : public GuardedGangs {
 protected:
  // Leases go on meanwhile.
  void pass(int64_t ms) {
    Gangs::pass(ms);
    for (auto& [name, ticket] : tickets_) EXPECT_TRUE(membership_->renew(ticket));
  }
  void save(uint64_t id, uint64_t iteration) {
    if (!checkpoints_) checkpoints_ = std::make_unique<Checkpoints>(*state_, *datasets_);
    ReplicaState kept{.version = 1, .bytes = 1 << 20};
    kept.in_slow = kept.home = true;
    kept.digest = {0, 9};
    const auto name = to_string(CheckpointName{id, task(id).attempt, iteration});
    membership_->replica_changed(rank(id, 0).node, name, kept);
    checkpoints_->found(rank(id, 0).node, name, kept);
    flush();
  }
  void kill(uint64_t id) {
    end(id, 0, killed(9));
    end_cancelled(id);
  }
  std::unique_ptr<Checkpoints> checkpoints_;
};

TEST_F(GangGoodput, OfATryThatSucceedsAllItsWorkCounts) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  const auto id = submit_and_place();
  pass(60'000);  // until its ranks run
  start_all(id);
  pass(180'000);
  EXPECT_EQ(measured("unsoundest").count, 0u) << "it runs";
  end(id, 0, success());
  flush();
  ASSERT_EQ(measured("unsoundest").count, 1u);
  EXPECT_NEAR(measured("unsoundest").mean, 0.75, 1e-6);
}

TEST_F(GangGoodput, OfATryThatFailsItsWorkUntilTheCheckpointThatTheNextOneBeginsFrom) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  const auto id = submit_and_place(1, 5);
  start_all(id);
  pass(kHour_ms);
  save(id, 10);
  pass(3 * kHour_ms);
  kill(id);
  EXPECT_EQ(measured("unsoundest").count, 0u) << "it is not known yet what is kept";
  place();
  ASSERT_EQ(measured("unsoundest").count, 1u);
  EXPECT_NEAR(measured("unsoundest").mean, 0.25, 1e-6);
  start_all(id);
  pass(kHour_ms);
  kill(id);  // without a checkpoint of its own
  place();
  ASSERT_EQ(measured("unsoundest").count, 2u);
  EXPECT_NEAR(measured("unsoundest").mean, 0.125, 1e-6);
}

TEST_F(GangGoodput, SpeedCountsWhereOwnerAndJobSayHowMuchItIs) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  auto told = gang(1);
  told.gang.estimate_ms = 2 * kHour_ms;
  const auto id = submit({told})->first_task;
  place();
  start_all(id);
  JobPoint point;
  point.iteration = 1;
  point.iterations = 100;
  gangs_->reported(rank(id, 0), point);
  pass(4 * kHour_ms);
  end(id, 0, success());
  flush();
  EXPECT_NEAR(measured("unsoundest").mean, 0.5, 1e-6);
}

TEST_F(GangGoodput, NothingIsKeptOfAGangThatFailsForGoodAndACancelledOneSaysNothing) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  const auto failed = submit_and_place();
  start_all(failed);
  pass(kHour_ms);
  end(failed, 0, failure(1));
  flush();
  ASSERT_EQ(measured("unsoundest").count, 1u);
  EXPECT_EQ(measured("unsoundest").mean, 0);
  const auto cancelled = submit_and_place();
  start_all(cancelled);
  pass(kHour_ms);
  lifecycle_->cancel(cancelled, nullptr);
  end_cancelled(cancelled);
  EXPECT_EQ(stored(cancelled)->state, TaskState::kCancelled);
  EXPECT_EQ(measured("unsoundest").count, 1u);
}

TEST_F(GangGoodput, ARestartOfTheCoordinatorForgetsWhoDecided) {
  begin("unsoundest", PolicyMode::kEnforce, without_control());
  const auto id = submit_and_place();
  start_all(id);
  again();
  ASSERT_TRUE(gangs_->policies().begin(without_control()));
  const auto on = rank(id, 0).node;
  membership_->join(facts(on), nodes_.at(on), {}, {attempt(id, 0)});
  end(id, 0, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
  EXPECT_EQ(measured("unsoundest").count, 0u);
}

// Through a gang's whole life.
TEST_F(GangGoodput, ABadPolicyIsDeposedByWhatBecomesOfItsGangs) {
  OversightSettings settings;
  settings.guard.control_share = 0.4;
  settings.guard.shadow_share = 0;
  begin("unsoundest", PolicyMode::kEnforce, settings);
  int gangs = 0;
  for (; gangs < 60 && guard("unsoundest").memory().standing == Standing::kTrusted; ++gangs) {
    const auto id = submit_and_place();
    start_all(id);
    pass(60'000);
    end(id, 0, has_bad_unit(id) ? failure(1) : success());
    flush();
  }
  EXPECT_EQ(guard("unsoundest").memory().standing, Standing::kDeposed) << gangs;
  EXPECT_FALSE(has_bad_unit(submit_and_place()));
}

// With the settings as they come; the units' failures are simulated here.
TEST_F(GangGoodput, ABadPolicyIsDeposedWithinAFewHundredGangs) {
  begin("unsoundest", PolicyMode::kEnforce, {});
  GangView view;
  for (uint32_t unit = 0; unit < 8; ++unit) {
    view.state.node.push_back(unit / 4);
    view.state.free.push_back(true);
    view.state.per_h.push_back(unit < 4 ? 1e-4 : 1);
    view.numbers.push_back(unit % 4);
  }
  view.job.work_h = 2;
  view.shape = {.ranks = 2};
  SeededRandom random(7);
  int gangs = 0;
  for (; gangs < 600 && guard("unsoundest").memory().standing == Standing::kTrusted; ++gangs) {
    const auto choice = gangs_->policies().choose(view, 1);
    ASSERT_TRUE(choice) << choice.error().message;
    double per_h = 0;
    for (const auto& rank : choice->places.units)
      for (const uint32_t unit : rank) per_h += view.state.per_h[unit];
    const double survives = std::exp(-per_h * view.job.work_h);
    const bool fails = random.unit() > survives;
    oversight().measured(choice->turn, GangPolicies::kGoodput, fails ? 0.3 : 0.95);
  }
  EXPECT_LT(gangs, 600);
  EXPECT_EQ(guard("unsoundest").memory().standing, Standing::kDeposed);
}

// And the other way round: who does as the heuristic keeps its place.
TEST_F(GangGoodput, APolicyThatIsAsGoodStays) {
  begin("unsoundest", PolicyMode::kEnforce, {});
  SeededRandom random(7);
  for (int gangs = 0; gangs < 3000; ++gangs) {
    const auto turn = oversight().next("gang/unsoundest");
    oversight().answered(turn, DecisionFault::kNone);
    oversight().measured(turn, GangPolicies::kGoodput, random.unit());
  }
  EXPECT_EQ(guard("unsoundest").memory().standing, Standing::kTrusted);
}

}  // namespace
}  // namespace tierpilot::testing
