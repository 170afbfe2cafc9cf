// Who is asked, who answers, and what answers are not given.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <future>
#include <set>

#include "policy_host_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

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
  for (const auto& module : host->modules()) {
    names.insert(module.info.name);
    active += module.info.name == host->active();
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
  host->told(2, Finished{0.5});
  EXPECT_TRUE(eventually([&] { return host->learner("dqn").experiences == 1; }));
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

TEST_F(PolicyHostTest, RefusesWhatCannotBe) {
  EXPECT_EQ(PolicyHost::start({.modules = with(small_dqn()), .active = "oracle"}).error().code,
            ErrorCode::kNotFound);
  PublishedSettings published = small_published();
  published.network.heads = 5;
  EXPECT_EQ(PolicyHost::start({.modules = with({}, published)}).error().code, ErrorCode::kInvalid);
  DqnSettings settings = small_dqn();
  settings.weights = directory_ / "missing.weights";
  EXPECT_EQ(PolicyHost::start({.modules = with(settings)}).error().code, ErrorCode::kNotFound);
  std::ofstream(directory_.string()) << "a file where the directory should be";
  EXPECT_FALSE(
      PolicyHost::start({.modules = with(small_dqn()), .state_dir = directory_ / "policy"}));
}

}  // namespace
}  // namespace tierpilot::testing
