#include "coordinator/model_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include <nlohmann/json.hpp>

#include "base/text/json_text.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

// Written before tasks could ask for a memory tier.
TEST(ModelJson, ReadsTasksOfOlderStores) {
  const auto spec = parse_spec(
      R"({"name": "a", "argv": ["true"], "env": [], "datasets": [], "units": 1, "memory_bytes": 0,
          "float_operations": 0, "int_operations": 0, "time_limit_ms": 0, "after": [],
          "node": "n"})");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->node, "n");
  EXPECT_EQ(spec->memory_tier, "");
  const auto exit = parse_exit(
      R"({"how": "exited", "code": 3, "reason": "", "cpu_user_ns": 1, "cpu_system_ns": 2,
          "max_resident_bytes": 3, "wall_ns": 4, "io_read_bytes": "not told",
          "io_write_bytes": 5, "written": []})");
  ASSERT_TRUE(exit) << exit.error().message;
  EXPECT_EQ(exit->code, 3);
  EXPECT_EQ(exit->memory_tier, "");
  EXPECT_TRUE(exit->memory.empty());
}

// What nlohmann reads and writes again is the same text: digests of submits hold over an upgrade.
void expect_as_nlohmann_writes_it(const std::string& text) {
  const auto parsed = parse_json_or_discard<nlohmann::json>(text);
  ASSERT_FALSE(parsed.is_discarded()) << text;
  EXPECT_EQ(parsed.dump(), text);
}

TEST(ModelJson, WritesWhatNlohmannWould) {
  TaskSpec spec;
  spec.env = {{"A", "1"}};
  spec.datasets = {{"d", true}};
  spec.argv = {"\xff", "a\"b\\", "\x01\n\x7f", "gr\u00fc\u00df", ""};
  spec.after = {"one", "two"};
  for (const double operations : {0.0, 1.0, 1e9, 0.1, 1e24, 123456789012345680.0, 5e-324, -2.5}) {
    spec.float_operations = operations;
    expect_as_nlohmann_writes_it(spec_text(spec));
  }
  TaskExit exit;
  exit.code = -9;
  exit.wall_ns = UINT64_MAX;
  exit.written = {{"d", 1, 2}, {"e", 3, 4}};
  exit.memory = {{"faults", {7.0, ""}}, {"waits", {std::nullopt, "not told"}}};
  expect_as_nlohmann_writes_it(exit_text(exit));
  exit.node_fault = true;
  expect_as_nlohmann_writes_it(exit_text(exit));
  EXPECT_TRUE(parse_exit(exit_text(exit))->node_fault);
  expect_as_nlohmann_writes_it(served_text({1, 2, 3, 4, 5, 6, {1.5, ""}, 7, 8}));
  DecisionRecord decision;
  expect_as_nlohmann_writes_it(decision_text(decision));
  decision.kept_back_for = "n";
  decision.kept_back_ms = 1;
  decision.gang = {0.5, "n", 0.25, "trusted"};
  decision.candidates = {{"n", true, -0.5, 1, 2, 3, 4, 5}, {"m", false, std::nullopt}};
  expect_as_nlohmann_writes_it(decision_text(decision));
  expect_as_nlohmann_writes_it(reward_text({0.5, 0.25, 1, 0, 2, 3, 4, {std::nullopt, "no"}}));
  EXPECT_EQ(parse_json<nlohmann::json>(reward_text({HUGE_VAL}))["reward"], nullptr)
      << "JSON has none";
}

// One such number of one node must not stop the coordinator from starting again.
TEST(ModelJson, ReadsBackWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto served = parse_served(served_text({1, 2, 3, 4, 5, 6, {nan, ""}, 7, 8}));
  ASSERT_TRUE(served) << served.error().message;
  EXPECT_FALSE(served->evict_gb_per_s.value);
  EXPECT_NE(served->evict_gb_per_s.unavailable, "");
  EXPECT_EQ(served->local_bytes, 1u);
  RewardRecord reward;
  reward.penalty_term = std::numeric_limits<double>::infinity();
  reward.reward = 0.5;
  const auto back = parse_reward(reward_text(reward));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->reward, 0.5);
}

TEST(ModelJson, ADecisionTellsOfBeingKeptBackWhereItWas) {
  DecisionRecord decision;
  EXPECT_EQ(decision_text(decision).find("kept_back"), std::string::npos);
  EXPECT_EQ(parse_decision(decision_text(decision))->kept_back_for, "");
  decision.kept_back_for = "n";
  decision.kept_back_ms = 7;
  const auto back = parse_decision(decision_text(decision));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->kept_back_for, "n");
  EXPECT_EQ(back->kept_back_ms, 7);
}

TEST(ModelJson, ADecisionAboutAGangTellsWhatItIsHeldAgainst) {
  DecisionRecord decision;
  EXPECT_FALSE(parse_decision(decision_text(decision))->gang) << "it is no gang's";
  decision.gang = {1.5, "n1 x2, n2", std::numeric_limits<double>::infinity(),
                   "deposed: it is worse"};
  const auto back = parse_decision(decision_text(decision));
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_TRUE(back->gang);
  EXPECT_EQ(back->gang->expected_h, 1.5);
  EXPECT_EQ(back->gang->heuristic, "n1 x2, n2");
  EXPECT_EQ(back->gang->heuristic_h, 0) << "JSON has no such number";
  EXPECT_EQ(back->gang->standing, "deposed: it is worse");
}

TEST(ModelJson, ADecisionAboutAGangTellsHowManyRanksWentWhere) {
  DecisionRecord decision;
  decision.candidates = {{"n", true, std::nullopt}, {"m", true, std::nullopt}};
  EXPECT_EQ(decision_text(decision).find("ranks"), std::string::npos) << "it is no gang's";
  decision.candidates[1].ranks = 2;
  expect_as_nlohmann_writes_it(decision_text(decision));
  const auto back = parse_decision(decision_text(decision));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->candidates[0].ranks, 0U);
  EXPECT_EQ(back->candidates[1].ranks, 2U);
}

TEST(ModelJson, ReadsCandidatesOfOlderStores) {
  DecisionRecord decision;
  decision.candidates = {{"n", true, 0.5, 1, 2, 3, 4, 5}, {"m", false, std::nullopt}};
  auto json = parse_json<nlohmann::json>(decision_text(decision));
  json["candidates"] = parse_json<nlohmann::json>(
      R"([{"node": "n", "eligible": true, "free_fast_bytes": 1, "held_fast_bytes": 2,
           "held_slow_bytes": 3, "assigned_units": 4, "units": 5, "q": 0.5},
          {"node": "m", "eligible": false, "free_fast_bytes": 0, "held_fast_bytes": 0,
           "held_slow_bytes": 0, "assigned_units": 0, "units": 0, "q": null}])");
  const auto read = parse_decision(json.dump());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(decision_text(*read), decision_text(decision));
}

TEST(ModelJson, RefusesCandidatesThatDoNotFit) {
  DecisionRecord decision;
  decision.candidates = {{"n", true, 0.5, 1, 2, 3, 4, 5}, {"m", false, std::nullopt}};
  auto json = parse_json<nlohmann::json>(decision_text(decision));
  json["candidates"]["units"].erase(0);
  EXPECT_FALSE(parse_decision(json.dump()));
  for (const char* wrong : {"7", "{}", R"({"node": 7})", R"({"node": ["a"]})"}) {
    json["candidates"] = parse_json<nlohmann::json>(wrong);
    EXPECT_FALSE(parse_decision(json.dump())) << wrong;
  }
}

// A store from elsewhere: of any number nlohmann makes one that fits the type.
TEST(ModelJson, RefusesNumbersThatAreNotWholeOrDoNotFit) {
  const auto rank = [](const std::string& number, const std::string& units = "0") {
    return parse_rank(R"({"gang": 1, "rank": )" + number + R"(, "pid": -1, "gpus": [],
                          "cpu_units": [)" +
                      units + "]}");
  };
  EXPECT_TRUE(rank("4294967295", "4294967295"));
  for (const char* wrong : {"4294967296", "-1", "1.5", "1e300", "true", "null", "\"1\""}) {
    EXPECT_FALSE(rank(wrong)) << wrong;
    EXPECT_FALSE(rank("1", wrong)) << wrong;
  }
  const auto wrong = parse_spec(R"({"name": "a", "argv": [], "env": [], "datasets": [],
                                    "units": 1e300})");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("whole number"));
  DecisionRecord decision;
  auto json = parse_json<nlohmann::json>(decision_text(decision));
  json["considered"] = -1;
  EXPECT_FALSE(parse_decision(json.dump()));
}

TEST(ModelJson, WhatIsNestedDeepIsNotCopied) {
  DecisionRecord decision;
  decision.candidates = {{"n", true, std::nullopt}};
  std::string text = decision_text(decision);
  const std::string deep(1'000'000, '['), back(1'000'000, ']');
  const auto at = text.find("\"candidates\":{") + std::string_view("\"candidates\":{").size();
  text.insert(at, "\"a\":[" + deep + back + "],");
  const auto read = parse_decision(text);
  ASSERT_TRUE(read) << read.error().message << ": nobody looks at it";
  EXPECT_EQ(read->candidates.size(), 1U);
}

}  // namespace
}  // namespace tierpilot::testing
