#include "coordinator/core/sharing/core_speeds.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tierpilot {
namespace {

constexpr double kReference = 50e9;

NodeFacts node(const std::string& name, double float32_ops_per_s = kReference) {
  NodeFacts facts;
  facts.name = name;
  facts.float32_ops_per_s = float32_ops_per_s;
  return facts;
}

TEST(CoreSpeeds, AProbeTellsHowFastANodeIs) {
  CoreSpeeds speeds(kReference);
  EXPECT_DOUBLE_EQ(speeds.of(node("alike")).times, 1);
  EXPECT_NEAR(speeds.of(node("fast", 2 * kReference)).times, 2, 0.06);
  EXPECT_NEAR(speeds.of(node("slow", kReference / 2)).times, 0.5, 0.02);
}

// What is known of one node tells little of another.
TEST(CoreSpeeds, ANodeThatRanNothingIsLessCertain) {
  CoreSpeeds speeds(kReference);
  for (const char* name : {"a", "b", "c", "d", "e"}) speeds.ran(node("known"), name, 1);
  EXPECT_LT(speeds.of(node("known")).sd, 0.6 * speeds.of(node("new")).sd);
}

TEST(CoreSpeeds, WithoutAFigureCoresAreAlike) {
  CoreSpeeds unknown(0), known(kReference);
  EXPECT_DOUBLE_EQ(unknown.of(node("a", 123e9)).times, 1);
  EXPECT_DOUBLE_EQ(known.of(node("a", 0)).times, 1);
  EXPECT_LE(known.of(node("a", 1e30)).times, 20.5) << "nobody believes that";
}

// Trainings of several models take 1.5 times as long on one node as foretold.
TEST(CoreSpeeds, RunsTellWhatTheProbeDoesNot) {
  CoreSpeeds speeds(kReference);
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    speeds.ran(node("slow"), name, 1.5);
    speeds.ran(node("other"), name, 1);
  }
  EXPECT_NEAR(speeds.of(node("slow")).times, 1 / 1.5, 0.12);
  EXPECT_NEAR(speeds.of(node("other")).times, 1, 0.12);
  EXPECT_LT(speeds.of(node("slow")).times, 0.85 * speeds.of(node("other")).times);
}

// One model takes half as long as its card foretells, wherever it runs; others do not.
TEST(CoreSpeeds, RunsOfAModelCorrectItsCard) {
  CoreSpeeds speeds(kReference);
  const double unseen_sd = speeds.of_model("odd").sd;
  for (const char* where : {"n1", "n2", "n3"})
    for (const char* name : {"odd", "b", "c", "d", "e"})
      speeds.ran(node(where), name, name == std::string("odd") ? 0.5 : 1);
  const auto odd = speeds.of_model("odd"), usual = speeds.of_model("b");
  EXPECT_EQ(odd.runs, 3u);
  EXPECT_LT(odd.ln, -0.4);
  EXPECT_NEAR(usual.ln, 0, 0.15);
  EXPECT_LT(odd.sd, 0.6 * unseen_sd);
  EXPECT_EQ(speeds.of_model("never").runs, 0u);
  EXPECT_DOUBLE_EQ(speeds.of_model("never").sd, unseen_sd);
}

TEST(CoreSpeeds, WhatIsAbsurdOrOfNoModelTeachesNothing) {
  CoreSpeeds speeds(kReference);
  speeds.ran(node("n"), "", 1.5);
  for (const double ratio : {0.0, -1.0, 100.0, 1e-9, std::nan("")})
    speeds.ran(node("n"), "a", ratio);
  EXPECT_TRUE(speeds.take_learned().empty());
  EXPECT_DOUBLE_EQ(speeds.of(node("n")).times, 1);
}

TEST(CoreSpeeds, WhatWasLearnedCanBeKept) {
  CoreSpeeds before(kReference), after(kReference);
  for (const char* name : {"a", "b", "c"}) before.ran(node("n"), name, 1.4);
  const auto learned = before.take_learned();
  EXPECT_EQ(learned.size(), 3u);
  EXPECT_TRUE(before.take_learned().empty());
  after.restore(learned);
  EXPECT_NEAR(after.of(node("n")).times, before.of(node("n")).times, 0.06);
  EXPECT_NEAR(after.of_model("a").ln, before.of_model("a").ln, 0.01);
  EXPECT_EQ(after.of_model("a").runs, 1u);
}

}  // namespace
}  // namespace tierpilot
