// Plans of several savings are one run of the rule, as far as it may look.
#include "policies/swap/capuchin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/swap/skipping.h"

namespace tierpilot::swap {
namespace {

Limits limits_of(const Graph& graph, double gb_per_s) {
  return {.budget_bytes = baseline(graph).peak_bytes / 2, .link = {.gb_per_s = gb_per_s}};
}

bool same(const std::vector<Absence>& a, const std::vector<Absence>& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.from == y.from && x.to == y.to && x.action == y.action;
  });
}

TEST(Capuchin, APlanThatSavesMoreHasAllThatOneHasThatSavesLess) {
  const auto graph = skipping(100, 2, 1);
  for (const double gb_per_s : {0.0, 1.0, 12.0}) {
    const auto plans = capuchin_plans(graph, Timetable(graph), limits_of(graph, gb_per_s));
    ASSERT_EQ(plans.size(), 6U);
    std::vector<size_t> away(plans.size());
    for (size_t i = 0; i < plans.size(); ++i)
      for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
        const auto& absences = plans[i].absences[storage];
        away[i] += absences.size();
        const bool before = i > 0 && !plans[i - 1].absences[storage].empty();
        EXPECT_TRUE(!before || same(plans[i - 1].absences[storage], absences)) << gb_per_s;
      }
    EXPECT_TRUE(std::ranges::is_sorted(away));
    EXPECT_GT(away.front(), 0U);
    EXPECT_GT(away.back(), away.front());
  }
}

TEST(Capuchin, InHasteThePlansThatAreFoundSoonAreThoseOfAll) {
  const auto graph = skipping(200, 3, 2);
  const Timetable timetable(graph);
  const auto limits = limits_of(graph, 0);
  const auto all = capuchin_plans(graph, timetable, limits);
  const auto some = capuchin_plans(graph, timetable, limits, 3'000);
  ASSERT_GT(some.size(), 0U);
  ASSERT_LT(some.size(), all.size());
  for (size_t i = 0; i < some.size(); ++i)
    for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
      EXPECT_TRUE(same(some[i].absences[storage], all[i].absences[storage]));
  EXPECT_TRUE(capuchin_plans(graph, timetable, limits, 1).empty());
}

}  // namespace
}  // namespace tierpilot::swap
