#include "coordinator/config.h"

#include <gmock/gmock.h>

#include "coordinator/connection_limit.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

Result<CoordinatorConfig> read(std::string_view toml) {
  return read_coordinator_config(*ConfigReader::parse(toml, "coordinator.toml"));
}

TEST(CoordinatorConfig, ConnectionsLeaveDescriptorsForTheStore) {
  EXPECT_EQ(affordable_connections(20'000, 2, 65'536), 20'000u) << "as the unit file has it";
  EXPECT_EQ(affordable_connections(20'000, 1, 1'024), 672u);
  EXPECT_EQ(affordable_connections(20'000, 2, 1'024), 336u);
  EXPECT_EQ(connections_of_one(20'000), 15'000u);
  EXPECT_EQ(connections_of_one(1), 1u);
  EXPECT_EQ(affordable_connections(20'000, 1, 100), 1u);
  EXPECT_EQ(handshakes_beside(20'000), 1'024u);
  EXPECT_EQ(handshakes_beside(672), 84u) << "which leaves some of 768";
  EXPECT_EQ(handshakes_beside(1), 1u);
  EXPECT_EQ(affordable_connections(20'000, 1, UINT64_MAX), 20'000u) << "no limit";
}

TEST(CoordinatorConfig, GangsArePlacedByAPolicyThatThereIs) {
  const auto config = read("[gang]\npolicy = \"spread\"\npatience_s = 5");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->core.gang_policy, "spread");
  EXPECT_EQ(config->core.gang_patience_ms, 5000);
  const std::string file = TEST_SOURCE "/policies/weights/ac.weights";
  const auto learned = read("[gang]\npolicy = \"ac\"\nweights = \"" + file + '"');
  ASSERT_TRUE(learned) << learned.error().message;
  EXPECT_EQ(learned->core.gang_policy, "ac");
  EXPECT_EQ(learned->core.gang_weights, file);
  EXPECT_EQ(learned->core.gang_mode, PolicyMode::kEnforce);
  EXPECT_EQ(read("[gang]\nmode = \"advise\"")->core.gang_mode, PolicyMode::kAdvise);
  EXPECT_FALSE(read("[gang]\nmode = \"loud\""));
  const auto lost = read("[gang]\npolicy = \"ac\"\nweights = \"/nonexistent\"");
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("/nonexistent"));
  for (const char* name : {"dqn", "clairvoyant"}) {
    const auto wrong = read(std::string("[gang]\npolicy = \"") + name + '"');
    ASSERT_FALSE(wrong) << name;
    EXPECT_THAT(wrong.error().message, HasSubstr("expected-time"));
  }
}

TEST(CoordinatorConfig, WhereTheShippedWeightsAreMissingGangsArePlacedByTheHeuristicAndThatIsSaid) {
  const auto config = read("");
  ASSERT_TRUE(config) << config.error().message;
  if (config->core.gang_policy == "ac") GTEST_SKIP() << "they are installed here";
  EXPECT_EQ(config->core.gang_policy, "expected-time");
  ASSERT_EQ(config->hints.size(), 1u);
  EXPECT_THAT(config->hints[0], HasSubstr("ac.weights"));
  EXPECT_THAT(config->hints[0], HasSubstr("'expected-time' decides where gangs run"));
  const auto by_name = read("[gang]\npolicy = \"ac\"\nweights = \"\"");
  ASSERT_TRUE(by_name) << by_name.error().message;
  EXPECT_EQ(by_name->core.gang_policy, "expected-time");
}

TEST(CoordinatorConfig, WhatFailuresCostIsTakenUntilItIsMeasured) {
  const auto config = read("[gang]\ncheckpoint_s = 36\nrestart_s = 90\nrepair_min = 30");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_DOUBLE_EQ(config->core.gang_costs.checkpoint_h, 0.01);
  EXPECT_DOUBLE_EQ(config->core.gang_costs.restart_h, 0.025);
  EXPECT_DOUBLE_EQ(config->core.gang_costs.repair_h, 0.5);
}

TEST(CoordinatorConfig, UsersHaveRoles) {
  const auto config = read(
      "[users]\noperate = [\"ann\"]\nread = [\"uid 12\"]\nothers = \"none\"\n"
      "nodes = [\"n1\"]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->access.users.at("ann"), Role::kOperate);
  EXPECT_EQ(config->access.users.at("uid 12"), Role::kRead);
  EXPECT_EQ(config->access.others, Role::kNone);
  EXPECT_TRUE(config->access.nodes && config->access.nodes->contains("n1"));
  const auto twice = read("[users]\noperate = [\"ann\"]\nread = [\"ann\"]\nothers = \"all\"\n");
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("another role already"));
  EXPECT_THAT(twice.error().message, HasSubstr("none, read, submit, operate"));
}

TEST(CoordinatorConfig, TheQueueIsServedShortestFirstUnlessArrivalIsWanted) {
  const auto order = [](std::string_view toml) { return read(toml)->core.service_order; };
  EXPECT_EQ(order(""), ServiceOrder::kShortest);
  EXPECT_EQ(order("[queue]\norder = \"shortest\""), ServiceOrder::kShortest);
  EXPECT_EQ(order("[queue]\norder = \"arrival\""), ServiceOrder::kArrival);
}

TEST(CoordinatorConfig, AnUnknownOrderIsNamedBesideWhatThereIs) {
  const auto config = read("[queue]\norder = \"Shortest\"\nmax_attempts = 0");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("queue.order: must be one of shortest, arrival"));
  EXPECT_THAT(config.error().message, HasSubstr("max_attempts")) << "all that is wrong at once";
}

}  // namespace
}  // namespace tierpilot
