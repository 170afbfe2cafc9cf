#include "policies/sharing/published.h"

#include <gtest/gtest.h>

namespace tierpilot::sharing {
namespace {

// The examples of the publication.
TEST(Published, TakesTheNodeWhoseFittingUnitHasMostFree) {
  const UtilisationSet need{{"A1", 400}, {"A2", 500}, {"A3", 700}};
  const std::vector<PublishedNode> nodes{
      {{"A1", 900}, {"A2", 1000}, {"A3", 300}},
      {{"A1", 900}, {"A2", 400}, {"A3", 800}},
      {{"A1", 100}, {"A2", 200}, {"A3", 500}},
  };
  const auto place = place_published(nodes, need, JobClass::kLatencySensitive);
  EXPECT_EQ(place, (PublishedPlace{.node = 0, .unit = 1, .milli = 500, .released_milli = 0}));
}

TEST(Published, ReleasesWhatBestEffortTasksHold) {
  const std::vector<PublishedNode> nodes{{{"A1", 200, 400}}};
  const auto place = place_published(nodes, {{"A1", 350}}, JobClass::kLatencySensitive);
  EXPECT_EQ(place, (PublishedPlace{.node = 0, .unit = 0, .milli = 350, .released_milli = 150}));
  EXPECT_FALSE(place_published(nodes, {{"A1", 350}}, JobClass::kBestEffort));
}

TEST(Published, GrowsByATenthWhenThePromiseWouldBeMissed) {
  EXPECT_EQ(grown_published(300, 90, 60, 120), 400U);
  EXPECT_EQ(grown_published(300, 90, 20, 120), 300U);
  EXPECT_EQ(grown_published(950, 90, 60, 120), 1000U);
}

TEST(Published, BestEffortTasksTakeTheQuickestUnit) {
  const PublishedNode node{{"A1", 900}, {"A2", 500}, {"A3", 100}};
  const UtilisationSet need{{"A1", 300}, {"A2", 300}, {"A3", 300}};
  const std::unordered_map<std::string, double> run_s{{"A1", 60}, {"A2", 40}, {"A3", 10}};
  EXPECT_EQ(unit_published(node, need, run_s, JobClass::kBestEffort), 1U);
  EXPECT_EQ(unit_published(node, need, run_s, JobClass::kLatencySensitive), 0U);
}

TEST(Published, PausesWhoUsesTooMuchAndKeepsHisPromise) {
  EXPECT_TRUE(pauses_published(300, 400, 10, 10, 120));
  EXPECT_FALSE(pauses_published(300, 400, 90, 60, 120));
  EXPECT_FALSE(pauses_published(300, 300, 10, 10, 120));
}

}  // namespace
}  // namespace tierpilot::sharing
