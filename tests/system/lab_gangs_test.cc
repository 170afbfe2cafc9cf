// What tierctl does with policies for training jobs without a coordinator.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

Outcome lab(Argv arguments) {
  return tierctl_at("unix:/nowhere/c.sock", std::move(arguments));
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(LabGangs, TheSuiteHasTheShippedPolicyBesideItsRivals) {
  const auto outcome =
      lab({"policy", "evaluate", "--suite", "gangs", "--max-gpus", "16", "--seeds", "2", "-j"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out);
  EXPECT_EQ(value["policies"].back(), "ac");
  for (const auto& row : value["rows"]) EXPECT_NE(row["best_rival"], "ac");
  EXPECT_EQ(value["rows"].size(), 20 * value["policies"].size());
}

TEST(LabGangs, ThePublishedPolicyLearnsWhereItIsTold) {
  const auto outcome = lab({"policy", "evaluate", "--suite", "gangs", "--max-gpus", "16", "--seeds",
                            "1", "--workloads", "1", "--policies", "best-fit,ac-published", "-j"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out);
  EXPECT_EQ(value["rows"].size(), 20u * 2);
  for (const auto& row : value["rows"]) EXPECT_EQ(row["unfinished"]["mean"], 0.0);
}

TEST(LabGangs, ARecordIsReplayedAgainstTheFewestFaultsRule) {
  const TempFolder folder("/tmp");
  const auto record = (folder.path() / "record.csv").string();
  std::ofstream(record) << "node,start_day,end_day\na,0,1\nb,2,3\na,6,7\nb,9,10\n";
  const auto outcome = lab({"policy", "evaluate", "--suite", "gangs", "--record", record,
                            "--record-nodes", "4", "--seeds", "1", "-j"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out);
  EXPECT_EQ(value["sums"].front()["rival"], "fewest-faults");
  for (const auto& row : value["rows"]) EXPECT_EQ(row["failures"], "recorded");
  const auto too_few = lab(
      {"-j", "policy", "evaluate", "--suite", "gangs", "--record", record, "--record-nodes", "1"});
  EXPECT_NE(too_few.code, 0);
}

TEST(LabGangs, WaysToTrainAreComparedInOneTable) {
  const auto outcome =
      lab({"policy", "evaluate", "--suite", "gangs", "--compare-training", "ac", "--policies",
           "best-fit,ac,ac-continued", "--workloads", "4", "--seeds", "1", "-j"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto value = parse(outcome.out);
  EXPECT_EQ(value["sums"].size(), 4u * 3);
  EXPECT_EQ(value["sums"].front()["rival"], "ac");
}

TEST(LabGangs, TrainedWeightsAreTheSameAgainAndCanBeEvaluated) {
  const TempFolder folder("/tmp");
  const auto config = (folder.path() / "small.toml").string();
  std::ofstream(config) << "[training]\nrounds = 2\nscenes = 1\n";
  std::vector<std::string> made;
  for (const char* name : {"a.weights", "b.weights"}) {
    const auto output = (folder.path() / name).string();
    const auto outcome =
        lab({"policy", "train", "--kind", "gang", "--config", config, "--output", output, "-j"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(parse(outcome.out)["curve"].size(), 2u);
    made.push_back(text_of(output));
  }
  EXPECT_FALSE(made[0].empty());
  EXPECT_EQ(made[0], made[1]);
  EXPECT_EQ(lab({"policy", "evaluate", "--suite", "gangs", "--max-gpus", "16", "--seeds", "1",
                 "--weights", (folder.path() / "a.weights").string()})
                .code,
            0);
}

TEST(LabGangs, WhatIsNoPolicyOrNoWeightsIsNamed) {
  const auto unknown = lab({"-j", "policy", "evaluate", "--suite", "gangs", "--max-gpus", "16",
                            "--seeds", "1", "--policies", "best-fit,lucky"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_NE(unknown.err.find("ac-published"), std::string::npos) << unknown.err;
  const TempFolder folder("/tmp");
  const auto file = (folder.path() / "no.weights").string();
  std::ofstream(file) << "TPDQNWT1";
  const auto refused = lab({"-j", "policy", "evaluate", "--suite", "gangs", "--weights", file});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find(file + ":1"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace tierpilot::test
