#include "policies/sharing/interference/pace_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tierpilot::sharing {
namespace {

std::vector<Neighbour> beside(std::initializer_list<uint64_t> ids) {
  std::vector<Neighbour> all;
  for (const uint64_t id : ids) all.push_back({id, {.name = "n" + std::to_string(id)}});
  return all;
}

std::optional<PaceChange> run(PaceWatch& watch, double pace, int windows) {
  std::optional<PaceChange> told;
  for (int i = 0; i < windows; ++i)
    if (auto change = watch.add(pace * (i % 2 == 0 ? 1.01 : 0.99))) told = std::move(change);
  return told;
}

TEST(PaceWatch, APaceIsHeldAgainstTheOneBefore) {
  PaceWatch watch;
  EXPECT_FALSE(run(watch, 100, 10)) << "nobody has come";
  watch.beside(beside({7}));
  const auto change = run(watch, 80, 10);
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->ln, std::log(0.8), 0.03);
  ASSERT_EQ(change->came.size(), 1U);
  EXPECT_EQ(change->came[0].name, "n7");
  EXPECT_TRUE(change->went.empty());
  EXPECT_GT(change->variance, 0);
  EXPECT_FALSE(run(watch, 80, 20)) << "once";
}

TEST(PaceWatch, WhoGoesTellsAsMuchAsWhoComes) {
  PaceWatch watch;
  watch.beside(beside({7, 8}));
  run(watch, 60, 8);
  watch.beside(beside({8}));
  const auto change = run(watch, 75, 8);
  ASSERT_TRUE(change);
  ASSERT_EQ(change->went.size(), 1U);
  EXPECT_EQ(change->went[0].name, "n7");
  EXPECT_TRUE(change->came.empty());
  EXPECT_NEAR(change->ln, std::log(75.0 / 60), 0.03);
}

TEST(PaceWatch, WhatIsBrokenOffIsToldIfItWasSeenForAWhile) {
  PaceWatch watch;
  run(watch, 100, 8);
  watch.beside(beside({7}));
  run(watch, 70, 4);
  const auto change = watch.beside(beside({7, 8}));
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->ln, std::log(0.7), 0.03);
  run(watch, 65, 2);
  EXPECT_FALSE(watch.beside(beside({8}))) << "two windows say nothing";
  // What came before those two is what the next is held against.
  const auto next = run(watch, 95, 8);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->came.size(), 1U);
  EXPECT_EQ(next->went.size(), 1U);
}

TEST(PaceWatch, OneOddWindowChangesNothing) {
  PaceWatch watch;
  run(watch, 100, 8);
  watch.beside(beside({7}));
  run(watch, 80, 3);
  watch.add(1e9);
  watch.add(1e-9);
  const auto change = run(watch, 80, 4);
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->ln, std::log(0.8), 0.03);
}

TEST(PaceWatch, WhatIsNoPaceTellsNothing) {
  PaceWatch watch;
  for (const double pace : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(watch.add(pace));
  EXPECT_FALSE(watch.measured());
  watch.add(1);
  EXPECT_TRUE(watch.measured());
}

// Another batch in the middle of a run, whoever is beside it.
TEST(PaceWatch, AnotherBatchIsNoNeighbour) {
  PaceWatch watch;
  run(watch, 100, 8);
  watch.beside(beside({7}));
  const auto change = run(watch, 100, 8);
  ASSERT_TRUE(change);
  EXPECT_NEAR(change->ln, 0, 0.03);
  EXPECT_FALSE(run(watch, 25, 20));
}

// More than any neighbour does, or the wrong way round.
TEST(PaceWatch, ChangesThatHaveAnotherCauseAreNotTold) {
  struct Case {
    double before, after;
    std::vector<Neighbour> first, then;
  };
  for (const auto& each : {Case{100, 1, {}, beside({7})}, Case{100, 10'000, {}, beside({7})},
                           Case{100, 200, {}, beside({7})}, Case{100, 50, beside({7}), {}},
                           Case{100, 900, beside({7}), beside({8})}}) {
    PaceWatch watch;
    watch.beside(each.first);
    run(watch, each.before, 8);
    watch.beside(each.then);
    EXPECT_FALSE(run(watch, each.after, 8)) << each.before << " to " << each.after;
  }
}

}  // namespace
}  // namespace tierpilot::sharing
