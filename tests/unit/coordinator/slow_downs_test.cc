#include "coordinator/core/sharing/slow_downs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierpilot {
namespace {

using sharing::Neighbour;
using sharing::Sharer;
using sharing::UnitKind;
using ::testing::HasSubstr;

Neighbour task(uint64_t id, const std::string& name, UnitKind on = UnitKind::kCores) {
  return {id, {.name = name, .on = on}};
}

// Reports once a second, with so many iterations per second of CPU time.
struct Reports {
  SlowDowns& slow_downs;
  Neighbour who;
  double now_s = 0;
  double used_s = 0, iterations = 0;

  void say(double pace, int seconds, double used = 0.5) {
    for (int s = 0; s < seconds; ++s) {
      now_s += 1;
      used_s += used;
      iterations += pace * used;
      JobPoint point{.iteration = static_cast<uint64_t>(iterations)};
      const auto ns = static_cast<uint64_t>(used_s * 1e9);
      if (who.sharer.on == UnitKind::kGpu)
        slow_downs.reported(who.id, who.sharer, {.cpu_ns = ns}, now_s);
      else
        point.cpu_ns = ns;
      slow_downs.reported(who.id, who.sharer, point, now_s);
    }
  }
};

TEST(PaceWindows, CountsIterationsBySecondsOfCompute) {
  PaceWindows windows(true);
  const auto point = [](uint64_t iteration, double used_s) {
    return JobPoint{.iteration = iteration, .cpu_ns = static_cast<uint64_t>(used_s * 1e9)};
  };
  EXPECT_FALSE(windows.add(10, point(5, 1)));
  EXPECT_FALSE(windows.add(10.5, point(8, 1.2))) << "too short";
  const auto pace = windows.add(12, point(25, 1.5));
  ASSERT_TRUE(pace);
  EXPECT_NEAR(*pace, 40, 1e-6);
  EXPECT_FALSE(windows.add(14, point(25, 1.9))) << "no iteration has ended";
  EXPECT_FALSE(windows.add(16, point(3, 2))) << "it begins anew";
  EXPECT_NEAR(*windows.add(18, point(13, 2.5)), 20, 1e-6);
  windows.restart();
  EXPECT_FALSE(windows.add(20, point(23, 3)));
  EXPECT_FALSE(windows.add(22, point(33, 3))) << "nothing was used: no pace, not an endless one";
}

TEST(SlowDowns, APairIsLearnedFromItsPace) {
  SlowDowns slow_downs(nullptr);
  Reports a{slow_downs, task(1, "a")};
  const auto b = task(2, "b");
  slow_downs.together({a.who});
  EXPECT_FALSE(slow_downs.measures(1));
  a.say(100, 10);
  EXPECT_TRUE(slow_downs.measures(1));
  EXPECT_THAT(slow_downs.of(a.who.sharer, b).by, HasSubstr("nothing"));
  slow_downs.together({a.who, b});
  a.say(60, 10);
  const auto learned = slow_downs.of(a.who.sharer, b);
  EXPECT_NEAR(learned.kept.part(), 0.6, 0.1);
  EXPECT_THAT(learned.by, HasSubstr("measured once"));
  EXPECT_EQ(learned.name, "b");
  const auto kept = slow_downs.together({a.who, b});
  EXPECT_NEAR(kept.at(1), learned.kept.part(), 1e-9);
  EXPECT_THAT(slow_downs.of(a.who.sharer, task(3, "c")).by, HasSubstr("beside others"));
}

// The share is halved: half the iterations, by half the CPU time.
TEST(SlowDowns, ASmallerShareIsNoSlowDown) {
  SlowDowns slow_downs(nullptr);
  Reports a{slow_downs, task(1, "a")};
  slow_downs.together({a.who});
  a.say(100, 10, 0.9);
  slow_downs.together({a.who, task(2, "b")});
  a.say(100, 10, 0.45);
  EXPECT_GT(slow_downs.of(a.who.sharer, task(2, "b")).kept.part(), 0.95);
}

TEST(SlowDowns, OfAGpuItsNodeTellsWhatWasUsed) {
  SlowDowns slow_downs(nullptr);
  Reports a{slow_downs, task(1, "a", UnitKind::kGpu)};
  const auto b = task(2, "b", UnitKind::kGpu);
  EXPECT_THAT(slow_downs.of(a.who.sharer, b).by, HasSubstr("an H100"));
  slow_downs.together({a.who});
  a.say(100, 12);
  slow_downs.together({a.who, b});
  a.say(60, 12);
  EXPECT_NEAR(slow_downs.of(a.who.sharer, b).kept.part(), 0.6, 0.1);
}

TEST(SlowDowns, WhoTellsNoIterationsIsNotMeasured) {
  SlowDowns slow_downs(nullptr);
  const auto a = task(1, "a"), b = task(2, "b");
  slow_downs.together({a});
  for (int s = 1; s <= 20; ++s) {
    if (s == 10) slow_downs.together({a, b});
    slow_downs.reported(1, a.sharer, {.cpu_ns = static_cast<uint64_t>(s) * 1'000'000'000}, s);
  }
  EXPECT_FALSE(slow_downs.measures(1));
  EXPECT_EQ(slow_downs.of(a.sharer, b).kept.by, sharing::KeptBy::kPrior);
}

TEST(SlowDowns, AnAbsurdPaceTeachesNothing) {
  SlowDowns slow_downs(nullptr);
  Reports a{slow_downs, task(1, "a")};
  slow_downs.together({a.who});
  a.say(100, 10);
  slow_downs.together({a.who, task(2, "b")});
  a.say(1e9, 10);  // it counts something else now
  EXPECT_EQ(slow_downs.of(a.who.sharer, task(2, "b")).kept.by, sharing::KeptBy::kPrior);
}

// Another coordinator, to which all is given that the first one said it had learned.
TEST(SlowDowns, WhatWasLearnedCanBeKept) {
  SlowDowns before(nullptr), after(nullptr);
  Reports a{before, task(1, "a")};
  const auto b = task(2, "b");
  before.together({a.who});
  a.say(100, 10);
  EXPECT_TRUE(before.take_learned().empty()) << "nobody was beside it";
  before.together({a.who, b});
  a.say(60, 10);
  const auto learned = before.take_learned();
  ASSERT_EQ(learned.size(), 1u);
  EXPECT_EQ(learned[0].victim, "a");
  EXPECT_EQ(learned[0].neighbour, "b");
  EXPECT_TRUE(before.take_learned().empty()) << "it was taken";
  for (const auto& pair : learned) after.restore(pair);
  const auto was = before.of(a.who.sharer, b), is = after.of(a.who.sharer, b);
  EXPECT_NEAR(is.kept.part(), was.kept.part(), 0.01);
  EXPECT_EQ(is.by, was.by);
}

}  // namespace
}  // namespace tierpilot
