// How decisions and policies are shown.
#include <nlohmann/json.hpp>

#include "tests/unit/tools/tierctl_fixture.h"

namespace tierpilot {
namespace {

using nlohmann::json;

TEST_F(Tierctl, ExplainShowsQChoiceAndReward) {
  add_tasks({"succeeded"});
  const auto decision = at({"task", "explain", "1", "-j"}).value()["decisions"][0];
  EXPECT_EQ(decision["candidates"][0]["q"], 0.75);
  EXPECT_EQ(decision["candidates"][1]["q_unavailable"], "no free unit");
  EXPECT_EQ(decision["reward"]["reward"], 0.625);
  const auto text = at({"task", "explain", "1"}).out;
  for (const char* part :
       {"the best candidate", "0.75", "<- chosen", "no free unit", "0.625", "1,500"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
}

TEST_F(Tierctl, ATaskThatIsKeptBackSaysForWhomSinceWhenAndUntilWhen) {
  add_tasks({"kept back", "succeeded", "a rank"});
  expect_parts(at({"task", "list"}), {"queued", "kept back for node 'n1'"});
  for (const char* verb : {"show", "explain"}) {
    expect_parts(at({"task", verb, "1"}),
                 {"queued", "kept back for node 'n1', which is full and has its data",
                  "\nKept back\n", " ago\n", "at the latest  in "});
    EXPECT_EQ(at({"task", verb, "2"}).out.find("\nKept back\n"), std::string::npos);
    const auto task = at({"task", verb, "1", "-j"}).value()["task"];
    EXPECT_EQ(task["kept_back"],
              json({{"node", "n1"}, {"since_ms", 2'000}, {"until_ms", int64_t{1} << 50}}));
    EXPECT_TRUE(at({"task", verb, "2", "-j"}).value()["task"]["kept_back"].is_null());
  }
  expect_parts(at({"task", "explain", "1"}), {"Decided    not yet"});
  expect_parts(at({"task", "explain", "2"}), {"n3", "4,321"});
  expect_parts(at({"task", "explain", "3"}), {"Decided    with its gang: see task 7"});
}

TEST_F(Tierctl, OfAGangAllNodesThatItsRanksWentToAreMarked) {
  add_tasks({"a gang"});
  const auto text = at({"task", "explain", "1"}).out;
  size_t marks = 0;
  for (size_t found = text.find("<- chosen"); found != text.npos;
       found = text.find("<- chosen", found + 1))
    ++marks;
  EXPECT_EQ(marks, 4U) << text;
  expect_parts(at({"task", "explain", "1"}), {"<- chosen for 2 ranks\n", "<- chosen for 1 rank\n"});
  const auto decisions = at({"task", "explain", "1", "-j"}).value()["decisions"];
  EXPECT_EQ(decisions[1]["candidates"][0]["ranks"], 2);
}

TEST_F(Tierctl, OfATaskWithAShareItsUnitsAreExplainedAndNothingElse) {
  add_tasks({"shares a unit"});
  const auto ran = at({"task", "explain", "1"});
  expect_parts(ran, {"Units looked at", "<- chosen", "250 thousandths are free, 300 needed", "77",
                     "it is kept for task 78"});
  for (const char* other : {"Candidates", "Weights version", "Observation", "Nodes considered"})
    EXPECT_EQ(ran.out.find(other), std::string::npos) << other << " is in\n" << ran.out;
  const auto value = at({"task", "explain", "1", "-j"}).value();
  EXPECT_EQ(value["units"][0]["unit"], 5);
  EXPECT_EQ(value["decisions"][0]["units"][0]["chosen"], true);
}

TEST_F(Tierctl, HowMuchIsKeptBackIsShown) {
  expect_parts(at({"status"}), {"of them, kept back", "1,234"});
  expect_parts(at({"node", "show", "n1"}), {"Units kept back for it", "5,678"});
  expect_parts(at({"policy", "show", "dqn"}), {"kept back for a full node", "40", "30", "1,500"});
  EXPECT_EQ(at({"policy", "show", "random"}).out.find("kept back"), std::string::npos);
}

TEST_F(Tierctl, PoliciesAreListedShownAndUsed) {
  EXPECT_EQ(at({"policy", "list", "-j"}).value()["policies"].size(), 2u);
  EXPECT_EQ(at({"policy", "use", "dqn", "-j"}).value()["policy"]["active"], true);
  EXPECT_EQ(fake_.state.active_policy, "dqn");
  EXPECT_EQ(at({"policy", "show", "dqn", "-j"}).value()["learner"]["replay_size"], 12);
  EXPECT_FALSE(at({"policy", "show", "random", "-j"}).value().contains("learner"));
}

TEST_F(Tierctl, PoliciesHaveModesVersionsAndComparisons) {
  EXPECT_EQ(at({"policy", "mode", "dqn", "advise", "-j"}).value()["policy"]["mode"], "advise");
  EXPECT_EQ(fake_.state.policy_mode, "advise");
  EXPECT_EQ(at({"policy", "rollback", "dqn", "2", "-j"}).value()["version"]["number"], 2);
  EXPECT_EQ(at({"policy", "rollback", "dqn", "-j"}).value()["version"]["number"], 3);
  EXPECT_EQ(at({"policy", "rollback", "dqn", "9"}).code, kExitNotFound);
  const auto beside = at({"policy", "compare", "-j"}).value();
  EXPECT_EQ(beside["concurrent"], true);
  EXPECT_EQ(beside["comparisons"][0]["second"], "heuristic");
  const auto text = at({"policy", "compare", "dqn", "random"}).out;
  for (const char* part : {"not at the same time", "random", "nothing was measured yet"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
}

}  // namespace
}  // namespace tierpilot
