#include "policies/sim/sharing/scored_policy.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"
#include "policies/sim/sharing/timed_policies.h"

namespace tierpilot::sharing {
namespace {

const std::vector<std::string> kTwoTypes{"T4", "A10"};

Request part_of_unit(uint32_t milli) {
  return {.units = 1, .share = {.milli = milli}};
}

ScoredPolicy scored(std::string_view name, const std::vector<Request>& usual = {}) {
  return {make_scorer(name, {usual, {}}).value(), kTwoTypes};
}

LiveUnit unit_of(const std::string& type, uint32_t used_milli) {
  LiveUnit unit{type, {kWholeUnit, 8 * kGiB}, {}, false};
  if (used_milli > 0) unit.jobs.push_back({.id = 1, .share = {used_milli, kGiB}});
  return unit;
}

WaitingJob asks(uint32_t milli, const std::vector<std::string>& types = kTwoTypes) {
  WaitingJob job;
  job.id = 100;
  for (const auto& type : types) job.predicted[type] = {.milli = 50, .run_s = 10};
  job.asked.milli = milli;
  return job;
}

TEST(ScoredPolicy, PackingTakesTheFullestSharedUnitThenIdleOnes) {
  auto packing = scored("packing");
  const std::vector<LiveNode> nodes{{unit_of("T4", 0), unit_of("T4", 300), unit_of("T4", 600)}};
  const auto small = packing.place(nodes, asks(400)), more = packing.place(nodes, asks(700)),
             all = packing.place(nodes, asks(1000));
  ASSERT_TRUE(small && more && all);
  EXPECT_EQ(small->unit, 2U);
  EXPECT_EQ(small->share.milli, 400U) << "what its user asks for, not what is predicted";
  EXPECT_EQ(more->unit, 1U);
  EXPECT_EQ(all->unit, 0U);
}

// Beside the fuller unit a tenth would be left, which nobody wants; best-fit takes it.
TEST(ScoredPolicy, DescentLeavesWhatUsuallyComesCanUse) {
  const std::vector<Request> usual{part_of_unit(300), part_of_unit(400)};
  const std::vector<LiveNode> nodes{{unit_of("T4", 600), unit_of("T4", 0)}};
  const auto descent = scored("fgd", usual).place(nodes, asks(300)),
             tightest = scored("best-fit", usual).place(nodes, asks(300));
  ASSERT_TRUE(descent && tightest);
  EXPECT_EQ(descent->unit, 1U);
  EXPECT_EQ(tightest->unit, 0U);
}

// Those that want a half can use A10s only: on a T4 the odd half is of no use already.
TEST(ScoredPolicy, DescentKnowsWhichTypesUsuallyDo) {
  auto half = part_of_unit(500);
  half.models = 2;
  const std::vector<LiveNode> nodes{{unit_of("A10", 0)}, {unit_of("T4", 0)}};
  const auto start = scored("fgd", {half}).place(nodes, asks(500));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->node, 1U);
}

TEST(ScoredPolicy, WhereNothingIsAskedForAWholeUnitIsGiven) {
  const auto start = scored("packing").place({{unit_of("T4", 100), unit_of("T4", 0)}}, asks(0));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->unit, 1U);
  EXPECT_EQ(start->share.milli, kWholeUnit);
}

TEST(ScoredPolicy, MemoryThatIsAskedForHasToBeFree) {
  auto job = asks(100);
  job.asked.memory_bytes = 7 * kGiB;
  auto packing = scored("packing");
  EXPECT_TRUE(packing.place({{unit_of("T4", 500)}}, job));
  job.asked.memory_bytes += 1;
  EXPECT_FALSE(packing.place({{unit_of("T4", 500)}}, job));
}

// Whatever the units and the job are like: a start fits on a type that will do, and where there is
// none no unit would have done; a refusal says so.
TEST(ScoredPolicy, StartsWhereverItFitsAndNowhereElse) {
  SeededRandom random(11);
  int starts = 0, waits = 0;
  for (const char* name : {"packing", "fgd"}) {
    auto policy = scored(name, {part_of_unit(200), part_of_unit(500), part_of_unit(1000)});
    for (int scene = 0; scene < 500; ++scene) {
      std::vector<LiveNode> nodes(1 + random.below(2));
      for (auto& node : nodes)
        for (size_t i = 0; i < 3; ++i)
          node.push_back(unit_of(kTwoTypes[random.below(2)],
                                 300 + 100 * static_cast<uint32_t>(random.below(8))));
      const auto job =
          asks(100 * static_cast<uint32_t>(1 + random.below(10)), {kTwoTypes[random.below(2)]});
      bool some_will_do = false;
      for (const auto& node : nodes)
        for (const auto& unit : node) {
          const bool will_do =
              job.predicted.contains(unit.type) && unit.free().milli >= job.asked.milli;
          EXPECT_EQ(policy.refusal(unit, job).empty(), will_do);
          some_will_do |= will_do;
        }
      const auto start = policy.place(nodes, job);
      ASSERT_EQ(start.has_value(), some_will_do);
      ++(start ? starts : waits);
      if (!start) continue;
      EXPECT_TRUE(policy.refusal(nodes[start->node][start->unit], job).empty());
    }
  }
  EXPECT_GT(starts, 100);
  EXPECT_GT(waits, 100);
}

TEST(ScoredPolicy, RivalsInTimePromiseEverybodyAndGiveWhatIsAskedFor) {
  const TimedSettings small{.units = 8, .jobs = 160};
  const auto given = run_timed("share", 5, small, {})->given;
  for (const auto name : {kPacked, kDescending}) {
    const auto run = run_timed(name, 5, small, {});
    ASSERT_TRUE(run) << name;
    EXPECT_GT(run->asked, 40U);
    EXPECT_EQ(run->made, run->asked);
    EXPECT_EQ(run->preemptions, 0U);
    EXPECT_GT(run->given, given) << "users ask for more than they need";
    EXPECT_EQ(run->makespan_s, run_timed(name, 5, small, {})->makespan_s);
  }
}

// Alike units of one host each leave packing nothing but to take the fullest one.
TEST(ScoredPolicy, WithoutHostsAndTypesPackingIsBestFit) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const TimedSettings small{.units = 6, .jobs = 120};
    const auto packing = run_timed(kPacked, seed, small, {}),
               best_fit = run_timed("best-fit", seed, small, {});
    ASSERT_TRUE(packing && best_fit);
    EXPECT_EQ(packing->makespan_s, best_fit->makespan_s);
    EXPECT_EQ(packing->kept, best_fit->kept);
    EXPECT_EQ(packing->slowed, best_fit->slowed);
  }
}

}  // namespace
}  // namespace tierpilot::sharing
