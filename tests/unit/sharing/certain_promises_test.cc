// What is not certain breaks no promise that `share` has made: pairs that nobody measured, runs
// whose length nobody knows, neighbours that hardly do anything.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {
namespace {

constexpr auto kSensitive = JobClass::kLatencySensitive;
constexpr auto kBestEffort = JobClass::kBestEffort;

// As for cores before any pair was measured: nothing lost in the middle, a quarter not ruled out.
Kept not_sure(const Sharer&, const Sharer&) {
  Kept kept;
  kept.variance = 0.19 * 0.19;
  return kept;
}

LiveJob foretold_job(uint64_t id, JobClass job_class, uint32_t milli, double use_milli) {
  LiveJob job;
  job.id = id;
  job.job_class = job_class;
  job.share.milli = job.need_milli = milli;
  job.sharer.name = "j" + std::to_string(id);
  job.sharer.milli = use_milli;
  job.elapsed_s = 10;
  return job;
}

WaitingJob waiting(uint32_t milli, double run_upper_s, double promise_s) {
  WaitingJob job;
  job.id = 100;
  job.job_class = kSensitive;
  job.sharer.name = "w";
  job.sharer.milli = milli;
  job.predicted["cpu"] = {milli, 0, run_upper_s / 1.5, run_upper_s};
  job.promise_left_s = promise_s;
  return job;
}

class CertainPromises : public ::testing::Test {
 protected:
  std::optional<Start> place_beside(const LiveJob& other, const WaitingJob& job) {
    return share_->place({{LiveUnit{"cpu", {kWholeUnit, 0}, {other}}}}, job);
  }
  Admission admit_beside(const std::vector<LiveJob>& there, const WaitingJob& job,
                         const std::vector<WaitingJob>& ahead = {}) {
    return alone_->admit({{LiveUnit{"cpu", {kWholeUnit, 0}, there}}}, ahead, job);
  }

  std::unique_ptr<SharePolicy> share_ = std::move(*make_share_policy("share", not_sure));
  std::unique_ptr<SharePolicy> alone_ = std::move(*make_share_policy("share", {}));
};

TEST_F(CertainPromises, WhatIsPromisedBesideABestEffortJobStarts) {
  const auto other = foretold_job(1, kBestEffort, 1000, 1000);
  for (double promise_s = 24; promise_s < 60; promise_s += 1) {
    const auto job = waiting(1000, 22.5, promise_s);
    const std::vector<LiveNode> nodes{{LiveUnit{"cpu", {kWholeUnit, 0}, {other}}}};
    ASSERT_TRUE(share_->admit(nodes, {}, job).admitted) << promise_s;
    EXPECT_TRUE(share_->place(nodes, job)) << promise_s;
  }
}

// It is a latency-sensitive one that takes too much: the other, of whom nothing is known, stays.
TEST_F(CertainPromises, NobodyEndsForWhatAnotherTakes) {
  const auto share = std::move(*make_share_policy("share", [](const Sharer&, const Sharer& other) {
    Kept kept;
    kept.variance = 0.19 * 0.19;
    if (other.name == "j2") kept = {std::log(0.6), 0, KeptBy::kPair, 5};
    return kept;
  }));
  auto promised = foretold_job(1, kSensitive, 600, 600);
  promised.left_s = promised.left_upper_s = 8;
  promised.promise_left_s = 10;
  const auto taker = foretold_job(2, kSensitive, 200, 200),
             other = foretold_job(3, kBestEffort, 200, 200);
  EXPECT_TRUE(share->adjust({"cpu", {kWholeUnit, 0}, {promised, taker, other}}).preempted.empty());
}

TEST_F(CertainPromises, WhoHardlyDoesAnythingEndsForNobody) {
  auto sleeper = foretold_job(1, kBestEffort, 100, 5);
  sleeper.need_milli = 10;
  const auto start = place_beside(sleeper, waiting(1000, 7.5, 8.2));
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->preempted.empty());
  // Nor later.
  auto promised = foretold_job(2, kSensitive, start->share.milli, 1000);
  promised.need_milli = kWholeUnit;
  promised.left_s = 5;
  promised.left_upper_s = 7.5;
  promised.promise_left_s = 8.2;
  sleeper.share.milli = 10;
  const auto later = share_->adjust({"cpu", {kWholeUnit, 0}, {sleeper, promised}});
  EXPECT_TRUE(later.preempted.empty());
  // Where the promise needs all of it, it has all of it.
  promised.promise_left_s = 7.6;
  EXPECT_FALSE(share_->adjust({"cpu", {kWholeUnit, 0}, {sleeper, promised}}).preempted.empty());
}

TEST_F(CertainPromises, NobodyIsToldToWaitForWhatMayNeverEnd) {
  auto holder = foretold_job(1, kSensitive, 1000, 1000);
  const auto job = waiting(1000, 6, 15);
  const auto refused = admit_beside({holder}, job);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.earliest_s, 0) << "nobody knows when";
  EXPECT_NE(refused.reason.find("how long"), std::string::npos) << refused.reason;
  holder.left_upper_s = 5;
  EXPECT_TRUE(admit_beside({holder}, job).admitted);
  // What was promised and is late tells no more than that.
  holder.promise_left_s = -3;
  holder.left_upper_s = 0;
  EXPECT_FALSE(admit_beside({holder}, job).admitted);
}

TEST_F(CertainPromises, WhoeverIsAheadForAnUnknownTimeMayTakeAllOfIt) {
  auto unknown = waiting(1000, 0, kNoPromise);
  EXPECT_FALSE(admit_beside({}, waiting(1000, 6, 15), {unknown}).admitted);
  auto leaving = foretold_job(1, kBestEffort, 1000, 1000);
  leaving.ends_in_s = 30;
  EXPECT_FALSE(admit_beside({leaving}, waiting(1000, 6, 90), {unknown}).admitted);
  unknown.predicted["cpu"].milli = 300;
  EXPECT_TRUE(admit_beside({}, waiting(600, 6, 15), {unknown}).admitted)
      << "beside it there is room";
}

// Of a cluster that is too large to be looked at closely as a whole.
TEST(LargeCluster, WhatIsFreeAnywhereIsFound) {
  const auto share = std::move(*make_share_policy("share", {}));
  std::vector<LiveNode> nodes(2000, {LiveUnit{"cpu", {kWholeUnit, 0}, {}}});
  for (size_t n = 0; n < nodes.size(); ++n) {
    nodes[n][0].jobs = {foretold_job(n + 1, kSensitive, 900, 900)};
    nodes[n][0].jobs[0].promise_left_s = nodes[n][0].jobs[0].left_upper_s = 1000;
  }
  auto job = waiting(600, 10, 12);
  EXPECT_FALSE(share->admit(nodes, {}, job).admitted);
  EXPECT_FALSE(share->place(nodes, job));
  nodes[1999][0].jobs.clear();
  EXPECT_TRUE(share->admit(nodes, {}, job).admitted);
  ASSERT_TRUE(share->place(nodes, job));
  EXPECT_EQ(share->place(nodes, job)->node, 1999u);
  job.only_node = 1500;
  EXPECT_FALSE(share->admit(nodes, {}, job).admitted) << "it may not run on that one";
  nodes[1500][0].jobs[0].share.milli = nodes[1500][0].jobs[0].need_milli = 1;
  EXPECT_TRUE(share->admit(nodes, {}, job).admitted);
}

TEST(LargeCluster, WhoLosesTheLeastEndsForAPromise) {
  const auto share = std::move(*make_share_policy("share", {}));
  std::vector<LiveNode> nodes(2000, {LiveUnit{"cpu", {kWholeUnit, 0}, {}}});
  for (size_t n = 0; n < nodes.size(); ++n) {
    nodes[n][0].jobs = {foretold_job(n + 1, kBestEffort, 100, 100)};
    nodes[n][0].jobs.push_back(foretold_job(10'000 + n, kSensitive, 850, 850));
    nodes[n][0].jobs[0].elapsed_s = 1000 - (n == 1234 ? 999 : 0);
  }
  const auto start = share->place(nodes, waiting(150, 90, 100));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->node, 1234u);
  EXPECT_EQ(start->preempted, std::vector<uint64_t>{1235});
}

// It is given time to save its state first.
TEST_F(CertainPromises, WaitForWhoHasToGo) {
  auto other = foretold_job(1, kBestEffort, 1000, 1000);
  other.takes_checkpoints = true;
  other.ends_in_s = 10;
  EXPECT_FALSE(admit_beside({other}, waiting(1000, 10, 17)).admitted);
  EXPECT_TRUE(admit_beside({other}, waiting(1000, 10, 25)).admitted);
  other.ends_in_s = 0;
  EXPECT_TRUE(admit_beside({other}, waiting(1000, 10, 17)).admitted);
  auto exact = waiting(1000, 10, 15);
  exact.predicted["cpu"].run_s = exact.predicted["cpu"].run_upper_s;
  other.ends_in_s = 5;
  EXPECT_FALSE(admit_beside({other}, exact).admitted);
  EXPECT_TRUE(admit_beside({other}, waiting(1000, 10, 15)).admitted)
      << "it is probably done sooner, and both are not late at once";
  auto small = foretold_job(1, kBestEffort, 100, 100);
  small.ends_in_s = 10;
  EXPECT_TRUE(admit_beside({small}, waiting(500, 10, 17)).admitted) << "it can stay";
}

// Shares are given so that a promise is kept ahead of its time.
TEST_F(CertainPromises, BeginWhenWhoWasPromisedFirstIsDoneNotWhenItWouldBeLate) {
  auto first = foretold_job(1, kSensitive, 1000, 1000);
  first.left_s = 45;
  first.left_upper_s = 50;
  first.promise_left_s = 100;
  EXPECT_TRUE(admit_beside({first}, waiting(900, 20, 95)).admitted);
  EXPECT_FALSE(admit_beside({first}, waiting(900, 20, 75)).admitted);
  first.left_s = first.left_upper_s = 90;  // it needs all of its time
  EXPECT_FALSE(admit_beside({first}, waiting(900, 20, 95)).admitted);
}

// It has what is left beside the first one, and all of it when that is done.
TEST_F(CertainPromises, HoldOfWhatBecomesFreeInTheirTime) {
  auto first = foretold_job(1, kSensitive, 1000, 1000);
  first.elapsed_s = 0;
  first.left_s = first.left_upper_s = 50;
  first.promise_left_s = 100;
  auto newcomer = waiting(900, 20, 80);
  ASSERT_TRUE(admit_beside({first}, newcomer).admitted);

  LiveUnit unit{"cpu", {kWholeUnit, 0}, {first}};
  const auto start = alone_->place({{unit}}, newcomer);
  ASSERT_TRUE(start);
  auto second = foretold_job(newcomer.id, kSensitive, start->share.milli, 900);
  second.need_milli = 900;
  second.elapsed_s = 0;
  second.left_s = second.left_upper_s = 20;
  second.promise_left_s = newcomer.promise_left_s;
  for (const auto& [id, milli] : start->shrunk) unit.jobs[0].share.milli = milli;
  unit.jobs.push_back(second);
  while (!unit.jobs.empty()) {
    const auto adjusted = alone_->adjust(unit);
    for (auto& job : unit.jobs) {
      for (const auto& [id, milli] : adjusted.milli)
        if (id == job.id) job.share.milli = milli;
      job.left_s -= 0.5 * speed_with(job.share.milli, job.need_milli);
      job.left_upper_s = job.left_s;
      job.elapsed_s += 0.5;
      job.promise_left_s -= 0.5;
      ASSERT_GE(job.promise_left_s, 0) << job.id << " has " << job.left_s << " s left";
    }
    std::erase_if(unit.jobs, [](const LiveJob& job) { return job.left_s <= 0; });
  }
}

// Whoever waits starts as soon as it may; a step is half a second.
bool is_kept(SharePolicy& policy, LiveUnit unit, WaitingJob job) {
  double left_s = job.predicted.at("cpu").run_upper_s;
  bool has_started = false;
  while (left_s > 0) {
    if (!has_started)
      if (const auto start = policy.place({{unit}}, job)) {
        has_started = true;
        for (const auto& [id, milli] : start->shrunk) unit.jobs[0].share.milli = milli;
        auto newcomer = foretold_job(job.id, kSensitive, job.predicted.at("cpu").milli, 1000);
        newcomer.share = start->share;
        newcomer.promise_left_s = job.promise_left_s;
        newcomer.left_s = newcomer.left_upper_s = left_s;
        unit.jobs.push_back(newcomer);
      }
    for (const auto& [id, milli] : policy.adjust(unit).milli)
      for (auto& each : unit.jobs)
        if (each.id == id) each.share.milli = milli;
    job.promise_left_s -= 0.5;
    for (auto& each : unit.jobs) {
      each.left_s -= 0.5 * speed_with(each.share.milli, each.need_milli);
      each.left_upper_s = each.left_s;
      each.elapsed_s += 0.5;
      each.promise_left_s -= 0.5;
      if (each.id == job.id) left_s = each.left_s;
      if (each.left_s > 0 && each.promise_left_s < 0) return false;
    }
    std::erase_if(unit.jobs, [](const LiveJob& each) { return each.left_s <= 0; });
    if (job.promise_left_s < -0.5) return false;
  }
  return true;
}

TEST_F(CertainPromises, AreKeptWhereAllGoesAsForetold) {
  SeededRandom random(7);
  int made = 0;
  for (int round = 0; round < 1000; ++round) {
    auto first = foretold_job(1, kSensitive, 300 + 50 * static_cast<uint32_t>(random.below(15)), 0);
    first.left_s = first.left_upper_s = 20 + 70 * random.unit();
    first.promise_left_s = 100;
    const double run_s = 20 + 180 * random.unit();
    auto job = waiting(1000, run_s, run_s * (1.06 + 1.5 * random.unit()));
    job.predicted["cpu"].run_s = run_s / 1.05;
    if (!admit_beside({first}, job).admitted) continue;
    ++made;
    EXPECT_TRUE(is_kept(*alone_, {"cpu", {kWholeUnit, 0}, {first}}, job))
        << first.need_milli << " for " << first.left_s << " s, then " << run_s << " s within "
        << job.promise_left_s;
  }
  EXPECT_GT(made, 500);
}

// Whoever waits takes as much once it has started.
TEST_F(CertainPromises, CountWhatThoseBeforeThemWillTake) {
  SeededRandom random(11);
  for (int round = 0; round < 300; ++round) {
    const auto milli = 300 + 50 * static_cast<uint32_t>(random.below(15));
    const double run_s = 5 + 50 * random.unit();
    auto first = waiting(milli, run_s, run_s * (1.2 + 4 * random.unit()));
    first.id = 1;
    auto started = foretold_job(1, kSensitive, milli, milli);
    started.elapsed_s = 0;
    started.left_s = first.predicted["cpu"].run_s;
    started.left_upper_s = run_s;
    started.promise_left_s = first.promise_left_s;
    const auto job = waiting(1000, 5 + 50 * random.unit(), 1);
    const double behind_s = admit_beside({}, job, {first}).earliest_s,
                 beside_s = admit_beside({started}, job).earliest_s;
    EXPECT_NEAR(behind_s, beside_s, 1e-6)
        << milli << " for " << run_s << " s within " << first.promise_left_s;
  }
}

// Others count on it.
TEST_F(CertainPromises, AreKeptAsFarAheadAsWasAimedAtFirst) {
  auto promised = foretold_job(1, kSensitive, 500, 1000);
  promised.need_milli = 1000;
  promised.elapsed_s = 0;
  promised.left_s = promised.left_upper_s = 40;
  promised.promise_left_s = 100;
  LiveUnit unit{"cpu", {kWholeUnit, 0}, {promised, foretold_job(2, kBestEffort, 500, 1000)}};
  auto& job = unit.jobs.front();
  while (job.left_s > 0) {
    for (const auto& [id, milli] : alone_->adjust(unit).milli)
      for (auto& each : unit.jobs)
        if (each.id == id) each.share.milli = milli;
    job.left_s -= 0.5 * speed_with(job.share.milli, job.need_milli);
    job.left_upper_s = job.left_s;
    job.elapsed_s += 0.5;
    job.promise_left_s -= 0.5;
    ASSERT_LE(job.elapsed_s, kAim * 100 + 10) << job.left_s << " s left";
  }
}

// A neighbour that ends soon slows it: it does not start beside that, and is too late afterwards.
TEST_F(CertainPromises, AreNotMadeForAPlaceWhereTheJobWaits) {
  const auto share = std::move(*make_share_policy("share", [](const Sharer& victim, const Sharer&) {
    return victim.name == "w" ? Kept{std::log(0.9), 0, KeptBy::kPair, 5} : Kept{};
  }));
  auto other = foretold_job(1, kSensitive, 300, 300);
  other.left_s = other.left_upper_s = 4;
  const LiveUnit unit{"cpu", {kWholeUnit, 0}, {other}};
  int made = 0;
  for (double promise_s = 10.6; promise_s < 16; promise_s += 0.1) {
    auto job = waiting(600, 10, promise_s);
    job.predicted["cpu"].run_s = 10;
    if (!share->admit({{unit}}, {}, job).admitted) continue;
    ++made;
    EXPECT_TRUE(is_kept(*share, unit, job)) << promise_s;
  }
  EXPECT_GT(made, 0);
}

TEST_F(CertainPromises, NobodyBeforeOneThatWaitsIsSlowedForWhoHasNone) {
  auto promised = foretold_job(1, kSensitive, 850, 850),
       other = foretold_job(2, kBestEffort, 150, 150);
  promised.need_milli = 1000;
  promised.left_s = promised.left_upper_s = 90;
  promised.promise_left_s = 135;
  LiveUnit unit{"cpu", {kWholeUnit, 0}, {promised, other}};
  EXPECT_FALSE(alone_->adjust(unit).preempts(2)) << "both go on, the promise less ahead";
  unit.promise_waits = true;
  EXPECT_TRUE(alone_->adjust(unit).preempts(2));

  unit.jobs = {promised};
  auto unpromised = waiting(250, 10, kNoPromise);
  EXPECT_FALSE(alone_->place({{unit}}, unpromised));
  unit.promise_waits = false;
  EXPECT_TRUE(alone_->place({{unit}}, unpromised));
}

// Each is planned once, whatever is asked for later.
TEST_F(CertainPromises, OfManyAreLookedAtInTimeThatGrowsWithTheirPairs) {
  size_t asked = 0;
  const auto counted = std::move(*make_share_policy("share", [&](const Sharer& a, const Sharer& b) {
    ++asked;
    return not_sure(a, b);
  }));
  const std::vector<LiveNode> nodes{{LiveUnit{"cpu", {kWholeUnit, 0}, {}}}};
  constexpr size_t kMany = 60;
  std::vector<WaitingJob> jobs;
  for (size_t i = 0; i < kMany; ++i) {
    jobs.push_back(waiting(1000, 10, 1e6));
    jobs.back().sharer.name = "w" + std::to_string(i);
  }
  const auto promises = counted->promises(nodes, {}, jobs);
  for (const auto& job : jobs) {
    ASSERT_TRUE(promises->ask(job).admitted);
    promises->add(job);
  }
  EXPECT_LE(asked, 10 * kMany * kMany);
}

}  // namespace
}  // namespace tierpilot::sharing
