#include "coordinator/policy_host/policy_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "coordinator/policy_host/inbox.h"
#include "policies/dqn/weights.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

PublishedSettings small_published() {
  PublishedSettings settings;
  settings.network.width = 32;
  settings.network.feed_forward = 64;
  settings.network.layers = 1;
  settings.replay_capacity = 64;
  settings.train_start = 16;
  settings.batch = 16;
  settings.batches_per_step = 2;
  settings.copy_interval = 8;
  return settings;
}

DqnSettings small() {
  DqnSettings settings;
  settings.replay_capacity = 64;
  settings.train_start = 16;
  settings.batch = 16;
  settings.batches_per_experience = 0.5;
  settings.copy_interval = 8;
  settings.epsilon = 0;
  return settings;
}

View three_nodes(double operations) {
  View view;
  view.task = {.operations = operations, .data_bytes = 1 << 20, .writes = false, .units = 1};
  for (uint32_t slot = 0; slot < 3; ++slot)
    view.nodes.push_back({.slot = slot,
                          .candidate = true,
                          .units = 2,
                          .free_fast_bytes = 1 << 20,
                          .fast_budget_bytes = 1 << 20});
  return view;
}

std::shared_ptr<const View> shared(View view) {
  return std::make_shared<const View>(std::move(view));
}

RewardParts reward_of(double reward) {
  RewardParts parts;
  parts.reward = reward;
  return parts;
}

class PolicyHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tierpilot_policy_host_" + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<PolicyHost> start(std::string active = "dqn") {
    auto host = PolicyHost::start({.dqn = small(),
                                   .published = small_published(),
                                   .seed = 3,
                                   .state_dir = directory_,
                                   .active = std::move(active)});
    EXPECT_TRUE(host) << host.error().message;
    return std::move(*host);
  }

  PolicyHost::Decided answer(PolicyHost& host, uint64_t id, std::shared_ptr<const View> view) {
    // Shared: get() may return before set_value() has done with the promise.
    auto promise = std::make_shared<std::promise<PolicyHost::Decided>>();
    host.decide(id, std::move(view),
                [promise](PolicyHost::Decided decided) { promise->set_value(std::move(decided)); });
    return promise->get_future().get();
  }
  // Acts on the answer.
  PolicyHost::Decided decide(PolicyHost& host, uint64_t id, const View& view) {
    const auto shared = std::make_shared<const View>(view);
    auto decided = answer(host, id, shared);
    host.took(id, shared, decided.decision.node);
    return decided;
  }
  PolicyHost::Decided decide(PolicyHost& host, uint64_t id) {
    return decide(host, id, three_nodes(static_cast<double>(id * 1000)));
  }

  // Decides and rewards ids [from, to).
  void live_through(PolicyHost& host, uint64_t from, uint64_t to) {
    for (uint64_t id = from; id < to; ++id) {
      const auto decided = decide(host, id);
      host.outcome(id, reward_of(decided.decision.node == 0 ? 1.0 : 0.0));
      host.finished(id, decided.decision.node == 0 ? 0.1 : 1.0 + 0.001 * static_cast<double>(id));
    }
  }

  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }

  std::filesystem::path directory_;
};

TEST_F(PolicyHostTest, DecidesInOrderAndTellsWhy) {
  const auto host = start();
  std::vector<uint64_t> order;
  std::promise<void> all;
  for (uint64_t id = 0; id < 50; ++id)
    host->decide(id, shared(three_nodes(1e9)), [&](PolicyHost::Decided decided) {
      order.push_back(decided.request);
      EXPECT_LT(decided.decision.node, 3u);
      EXPECT_TRUE(decided.decision.q[0] && decided.decision.q[1] && decided.decision.q[2]);
      EXPECT_EQ(decided.policy, "dqn");
      EXPECT_EQ(decided.decision.seen.size(), kTokenSize);
      EXPECT_GT(decided.decide_ns, 0);
      EXPECT_FALSE(decided.decision.reason.empty());
      EXPECT_GE(decided.decision.weights_version, 1u);
      if (order.size() == 50) all.set_value();
    });
  all.get_future().wait();
  for (uint64_t id = 0; id < 50; ++id) EXPECT_EQ(order[id], id);
}

TEST_F(PolicyHostTest, ADqnThatIsQuickDecidesOnTheCallersThread) {
  const auto host = start();
  EXPECT_FALSE(host->decide_at_once(0, three_nodes(1e9))) << "it was never asked before";
  std::optional<PolicyHost::Decided> decided;
  for (uint64_t id = 1; id < 5000 && !decided; ++id) {
    answer(*host, id, shared(three_nodes(1e9)));
    decided = host->decide_at_once(id, three_nodes(1e9));
  }
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->policy, "dqn");
  EXPECT_LT(decided->decision.node, 3u);
  EXPECT_GT(decided->decide_ns, 0);
  ASSERT_TRUE(host->use("dqn-published"));
  EXPECT_FALSE(host->decide_at_once(5000, three_nodes(1e9)));
}

TEST_F(PolicyHostTest, LearnsFromWhatHeuristicsDid) {
  const auto host = start("random");
  live_through(*host, 0, 40);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").training_steps >= 5; }));
  const LearnerState state = host->learner("dqn");
  EXPECT_EQ(state.decisions, 40u);
  EXPECT_EQ(state.experiences, 39u) << "the last one still waits for the next request";
  EXPECT_EQ(state.pending, 1u);
  EXPECT_GT(state.batches, 0u);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").weights_version > 1; }));
}

TEST_F(PolicyHostTest, ChangesPolicyWhileRunning) {
  const auto host = start("least-loaded");
  EXPECT_EQ(decide(*host, 1).policy, "least-loaded");
  ASSERT_TRUE(host->use("dqn"));
  EXPECT_EQ(host->active(), "dqn");
  EXPECT_EQ(decide(*host, 2).policy, "dqn");
  const Status unknown = host->use("oracle");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  int active = 0;
  std::set<std::string> names;
  for (const auto& policy : host->list()) {
    names.insert(policy.name);
    active += policy.active;
  }
  EXPECT_EQ(active, 1);
  EXPECT_THAT(names,
              ::testing::IsSupersetOf({"random", "earliest-finish", "dqn", "dqn-published"}));
}

TEST_F(PolicyHostTest, RequestsThatWereDismissedAreNotAnswered) {
  const auto host = start("random");
  std::promise<void> blocked;
  auto release = blocked.get_future();
  std::promise<void> began;
  const auto view = shared(three_nodes(2));
  host->decide(1, view, [&](PolicyHost::Decided decided) {
    host->took(1, view, decided.decision.node);
    began.set_value();
    release.wait();
  });
  began.get_future().wait();
  std::atomic<int> answered = 0;
  for (uint64_t id : {2, 3, 4})
    host->decide(id, view, [&](PolicyHost::Decided decided) {
      ++answered;
      host->took(decided.request, view, decided.decision.node);
    });
  host->dismiss(2);
  host->took(2, view, 1);
  host->dismiss(3);
  blocked.set_value();
  decide(*host, 5);
  EXPECT_EQ(answered, 1);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").pending == 4; })) << "1, 2, 4 and 5";
  host->finished(2, 0.5);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").experiences == 1; }));
}

// The answer may be on its way to the event loop when that finds the deadline passed.
TEST_F(PolicyHostTest, OnlyTheActionThatWasTakenIsLearnedFrom) {
  const auto host = start("round-robin");
  const auto view = shared(three_nodes(1000));
  EXPECT_EQ(answer(*host, 1, view).decision.node, 0u);
  host->finished(1, 0.5);
  (void)host->save();
  EXPECT_EQ(host->learner("dqn").decisions, 0u) << "an answer is not an action";
  EXPECT_EQ(host->learner("dqn").pending, 0u);
  decide(*host, 2);
  host->took(2, view, 2);
  host->took(3, view, 1);
  host->finished(2, 0.5);
  (void)host->save();
  EXPECT_EQ(host->learner("dqn").decisions, 2u);
  EXPECT_EQ(host->learner("dqn").experiences, 1u);
}

TEST_F(PolicyHostTest, NoCandidateIsAnAnswerToo) {
  const auto host = start();
  View view = three_nodes(1);
  for (NodeState& node : view.nodes) node.candidate = false;
  EXPECT_EQ(decide(*host, 1, view).decision.node, kNoNode);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").decisions == 1; }));
  EXPECT_EQ(host->learner("dqn").pending, 0u);
}

TEST_F(PolicyHostTest, NodesWithoutAnOutputFallBackToAHeuristic) {
  const auto host = start("dqn-published");
  View view = three_nodes(1);
  for (NodeState& node : view.nodes) node.slot += 1000;
  const auto decided = decide(*host, 1, view);
  EXPECT_LT(decided.decision.node, 3u);
  EXPECT_THAT(decided.decision.reason, HasSubstr("no value for any candidate"));
}

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
  host->finished(30, 0.5);
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

TEST_F(PolicyHostTest, RefusesWhatCannotBe) {
  EXPECT_EQ(PolicyHost::start({.dqn = small(), .active = "oracle"}).error().code,
            ErrorCode::kNotFound);
  PublishedSettings published = small_published();
  published.network.heads = 5;
  EXPECT_EQ(PolicyHost::start({.published = published}).error().code, ErrorCode::kInvalid);
  DqnSettings settings = small();
  settings.weights = directory_ / "missing.weights";
  EXPECT_EQ(PolicyHost::start({.dqn = settings}).error().code, ErrorCode::kNotFound);
  std::ofstream(directory_.string()) << "a file where the directory should be";
  EXPECT_FALSE(PolicyHost::start({.dqn = small(), .state_dir = directory_ / "policy"}));
}

TEST_F(PolicyHostTest, BeginsWithShippedWeights) {
  std::filesystem::create_directories(directory_);
  DqnSettings settings = small();
  settings.weights = directory_ / "shipped.weights";
  ASSERT_TRUE(save_weights(settings.weights,
                           {.weights = {{}, {}, 41}, .provenance = {.config_digest = "d1ge57"}}));
  const auto host = PolicyHost::start({.dqn = settings, .active = "dqn"});
  ASSERT_TRUE(host) << host.error().message;
  EXPECT_EQ(decide(**host, 1).decision.weights_version, 41u);
  EXPECT_THAT((*host)->learner("dqn").origin, HasSubstr("d1ge57"));
}

TEST_F(PolicyHostTest, ThePublishedLearnerSleepsUntilItsPolicyIsUsed) {
  const auto host = start("random");
  live_through(*host, 0, 20);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").decisions == 20; }));
  EXPECT_EQ(host->learner("dqn-published").decisions, 0u);
  ASSERT_TRUE(host->use("dqn-published"));
  live_through(*host, 20, 60);
  EXPECT_TRUE(eventually([&] { return host->learner("dqn-published").batches > 0; }));
}

TEST_F(PolicyHostTest, ManyThreadsMayReportAtOnce) {
  const auto host = start("random");
  constexpr uint64_t kEach = 200;
  const auto view = shared(three_nodes(1e9));
  std::vector<std::thread> threads;
  std::atomic<uint64_t> answered = 0;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t id = t * kEach; id < (t + 1) * kEach; ++id)
        host->decide(id, view, [&](PolicyHost::Decided decided) {
          ++answered;
          host->took(decided.request, view, decided.decision.node);
          host->finished(decided.request, 0.1 + 0.001 * static_cast<double>(decided.request));
        });
      host->learner("dqn");
      host->use(t % 2 ? "random" : "dqn");
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return answered == 4 * kEach; }));
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").experiences >= 4 * kEach - 1; }));
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

TEST_F(PolicyHostTest, WhatTheWeightsWereNotTrainedOnIsTheHeuristics) {
  const auto host = start("random");
  live_through(*host, 0, 60);
  ASSERT_TRUE(eventually([&] { return host->learner("dqn").weights_version > 1; }));
  ASSERT_TRUE(host->use("dqn"));
  EXPECT_EQ(decide(*host, 60).decision.fault, DecisionFault::kNone);
  View strange = three_nodes(60'000);
  strange.task.data_bytes = uint64_t{1} << 45;
  const auto decided = decide(*host, 61, strange);
  EXPECT_EQ(decided.decision.fault, DecisionFault::kUnfamiliar);
  EXPECT_LT(decided.decision.node, 3u);
  EXPECT_THAT(decided.decision.reason, HasSubstr("not trained on such a"));
}

TEST_F(PolicyHostTest, NorIsThatOfThePublishedWeightsAlsoAfterARestart) {
  auto host = start("dqn-published");
  View strange = three_nodes(60'000);
  strange.task.data_bytes = uint64_t{1} << 45;
  EXPECT_EQ(decide(*host, 0, strange).decision.fault, DecisionFault::kNone)
      << "it has not trained yet";
  host->abandon(0);
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

TEST(Inbox, DeliversEverySendersMessagesInOrder) {
  Inbox<std::pair<int, int>> inbox;
  std::vector<std::thread> senders;
  for (int s = 0; s < 4; ++s)
    senders.emplace_back([&, s] {
      for (int i = 0; i < 1000; ++i) inbox.push({s, i});
    });
  std::vector<int> next(4, 0);
  for (int received = 0; received < 4000;) {
    inbox.wait();
    for (const auto& [sender, number] : inbox.take_all()) {
      EXPECT_EQ(number, next[static_cast<size_t>(sender)]++);
      ++received;
    }
  }
  for (std::thread& sender : senders) sender.join();
}

}  // namespace
}  // namespace tierpilot
