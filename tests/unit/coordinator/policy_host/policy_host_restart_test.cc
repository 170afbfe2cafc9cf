// What is learned stays: over a restart, as shipped weights, and in versions to go back to.
#include <gmock/gmock.h>

#include <future>

#include "policies/placement/dqn/weights.h"
#include "policy_host_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(PolicyHostTest, GoesOnWhereItStoppedAfterARestart) {
  LearnerState before;
  {
    const auto host = start("random");
    live_through(*host, 0, 30);
    decide(*host, 30);  // its outcome comes after the restart
    ASSERT_TRUE(eventually([&] { return host->learner("dqn").training_steps > 0; }));
    ASSERT_TRUE(host->save());
    before = host->learner("dqn");
  }
  const auto host = start("dqn");
  const LearnerState after = host->learner("dqn");
  EXPECT_EQ(after.note, "");
  EXPECT_EQ(after.decisions, before.decisions);
  EXPECT_EQ(after.experiences, before.experiences);
  EXPECT_EQ(after.replay_size, before.replay_size);
  EXPECT_GE(after.training_steps, before.training_steps);
  EXPECT_GT(after.weights_version, before.weights_version);
  EXPECT_EQ(after.pending, before.pending);
  decide(*host, 31);
  host->told(30, Finished{0.5});
  EXPECT_TRUE(
      eventually([&] { return host->learner("dqn").experiences == before.experiences + 1; }));
}

TEST_F(PolicyHostTest, ADamagedCheckpointIsKeptAsideAndNoted) {
  {
    const auto host = start();
    decide(*host, 1);
  }
  const auto file = directory_ / "dqn.checkpoint";
  ASSERT_TRUE(std::filesystem::exists(file)) << "saved at the end";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const auto host = start();
  EXPECT_THAT(host->learner("dqn").note, HasSubstr("learning starts anew"));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "dqn.checkpoint.refused"));
  EXPECT_LT(decide(*host, 2).decision.node, 3u);
}

TEST_F(PolicyHostTest, BeginsWithShippedWeights) {
  std::filesystem::create_directories(directory_);
  DqnSettings settings = small_dqn();
  settings.weights = directory_ / "shipped.weights";
  ASSERT_TRUE(save_weights(settings.weights,
                           {.weights = {{}, {}, 41}, .provenance = {.config_digest = "d1ge57"}}));
  const auto host = PolicyHost::start({.modules = with(settings), .active = "dqn"});
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(decide(**host, 1).decision.weights_version, 41u);
  EXPECT_THAT((*host)->learner("dqn").origin, HasSubstr("d1ge57"));
}

TEST_F(PolicyHostTest, GoesBackToAVersionAndLearnsOnFromThere) {
  const auto version_of = [](PolicyHost& host, auto call) {
    auto done = std::make_shared<std::promise<Result<WeightsVersion>>>();
    call(host, [done](Result<WeightsVersion> version) { done->set_value(std::move(version)); });
    return done->get_future().get();
  };
  const auto keep = [](PolicyHost& host, auto done) {
    host.keep_version("dqn", {.why = "kept"}, done);
  };
  const auto roll_back_to = [](uint64_t number) {
    return [number](PolicyHost& host, auto done) {
      host.roll_back("dqn", number, {.why = "before"}, done);
    };
  };
  uint64_t before = 0;
  {
    const auto host = start("random");
    const auto first = version_of(*host, keep);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->number, 1u);
    EXPECT_EQ(version_of(*host, keep)->number, 1u) << "nothing is new";
    live_through(*host, 0, 60);
    ASSERT_TRUE(eventually([&] { return host->learner("dqn").weights_version > 1; }));
    before = host->learner("dqn").weights_version;
    const auto unknown = version_of(*host, roll_back_to(9));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
    const auto back = version_of(*host, roll_back_to(0));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->number, 1u);
    const auto state = host->learner("dqn");
    EXPECT_GT(state.weights_version, before) << "a version of its own: decisions name it";
    EXPECT_GE(after_a_crash("dqn").weights_version, state.weights_version) << "it is on disk";
    EXPECT_EQ(state.replay_size, 0u) << "it does not learn the same again";
    ASSERT_EQ(state.versions.size(), 2u);
    EXPECT_EQ(state.versions[1].why, "before");
    EXPECT_GT(state.versions[1].experiences, 0u);
    live_through(*host, 60, 120);
    EXPECT_TRUE(eventually([&] { return host->learner("dqn").weights_version > before + 1; }));
  }
  const auto host = start("dqn");
  EXPECT_EQ(host->learner("dqn").versions.size(), 2u);
  EXPECT_TRUE(version_of(*host, roll_back_to(2)));
}

TEST_F(PolicyHostTest, NorIsThatOfThePublishedWeightsAlsoAfterARestart) {
  auto host = start("dqn-published");
  View strange = three_nodes(60'000);
  strange.task.data_bytes = uint64_t{1} << 45;
  EXPECT_EQ(decide(*host, 0, strange).decision.fault, DecisionFault::kNone)
      << "it has not trained yet";
  host->told(0, Abandoned{});
  live_through(*host, 1, 60);
  ASSERT_TRUE(eventually([&] { return host->learner("dqn-published").weights_version > 1; }));
  for (const bool restarted : {false, true}) {
    if (restarted) {
      host.reset();
      host = start("dqn-published");
    }
    EXPECT_EQ(answer(*host, 60, shared(three_nodes(60'000))).decision.fault, DecisionFault::kNone);
    const auto decided = answer(*host, 61, shared(strange));
    EXPECT_EQ(decided.decision.fault, DecisionFault::kUnfamiliar);
    EXPECT_LT(decided.decision.node, 3u);
    EXPECT_THAT(decided.decision.reason, HasSubstr("size of the data"));
  }
}

}  // namespace
}  // namespace tierpilot::testing
