// What a policy says of a unit is what it does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/bytes.h"
#include "policies/sharing/live/refusal.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {
namespace {

// Jobs of the one kind halve each other's speed, those of the other hardly feel it.
Kept retained(const Sharer& victim, const Sharer& neighbour) {
  return {victim.name == neighbour.name ? std::log(0.5) : std::log(0.95), 0.01, KeptBy::kPair, 1};
}

class Scenes {
 public:
  LiveUnit unit() {
    LiveUnit unit{"cpu", {kWholeUnit, 8 * kGiB}, {}};
    for (size_t i = draw(4); i > 0; --i) {
      LiveJob job;
      job.id = i;
      job.job_class = draw(2) ? JobClass::kLatencySensitive : JobClass::kBestEffort;
      job.sharer = {.name = name(), .milli = 300};
      job.need_milli = 100 + 100 * static_cast<uint32_t>(draw(6));
      const auto free = unit.free();
      job.share = {std::min(free.milli, job.need_milli),
                   std::min<uint64_t>(free.memory_bytes, draw(4) * kGiB)};
      job.left_s = job.left_upper_s = 10;
      if (job.job_class == JobClass::kLatencySensitive && draw(2)) job.promise_left_s = 15;
      unit.jobs.push_back(job);
    }
    return unit;
  }
  WaitingJob job() {
    WaitingJob job;
    job.id = 100;
    job.job_class = draw(2) ? JobClass::kLatencySensitive : JobClass::kBestEffort;
    job.sharer = {.name = name(), .milli = 300};
    if (draw(3)) job.asked = {100 * static_cast<uint32_t>(1 + draw(9)), draw(5) * kGiB};
    job.predicted[draw(10) ? "cpu" : "gpu"] = {100 + 100 * static_cast<uint32_t>(draw(9)),
                                               draw(5) * kGiB, 10, 12};
    if (job.job_class == JobClass::kLatencySensitive && draw(2)) job.promise_left_s = 15;
    return job;
  }

 private:
  size_t draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  std::string name() { return draw(2) ? "matmul" : "loader"; }

  std::mt19937_64 random_{7};
};

class Refusals : public testing::TestWithParam<std::string> {};

TEST_P(Refusals, SayWhatThePolicyDoes) {
  const auto policy = std::move(*make_share_policy(GetParam(), retained));
  Scenes scenes;
  int starts = 0, refusals = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::vector<LiveNode> nodes{{scenes.unit()}};
    const auto job = scenes.job();
    const auto start = policy->place(nodes, job);
    const bool beside_all = start && start->preempted.empty() && start->shrunk.empty();
    const auto refused = policy->refusal(nodes[0][0], job);
    ASSERT_EQ(refused.empty(), beside_all) << "scene " << i << ": " << refused;
    ++(beside_all ? starts : refusals);
  }
  EXPECT_GT(starts, 100);
  EXPECT_GT(refusals, 100);
}

INSTANTIATE_TEST_SUITE_P(Policies, Refusals,
                         testing::Values("whole", "best-fit", "share-published", "share"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

LiveUnit with(LiveJob job) {
  return {"cpu", {kWholeUnit, 8 * kGiB}, {std::move(job)}};
}

WaitingJob one_that_uses(uint32_t milli, const std::string& name) {
  WaitingJob job;
  job.id = 100;
  job.sharer = {.name = name, .milli = static_cast<double>(milli)};
  job.predicted["cpu"] = {milli, kGiB, 10, 12};
  return job;
}

std::string refusal_of(const LiveUnit& unit, const WaitingJob& job) {
  return (*make_share_policy("share", retained))->refusal(unit, job);
}

TEST(Refusal, NamesWhatIsMissing) {
  LiveJob other;
  other.id = 7;
  other.sharer = {.name = "matmul", .milli = 300};
  other.share = {900, 0};
  EXPECT_EQ(refusal_of(with(other), one_that_uses(600, "loader")),
            "100 thousandths are free, 300 needed");
  other.share = {100, 7 * kGiB + kGiB / 2};
  EXPECT_EQ(refusal_of(with(other), one_that_uses(600, "loader")),
            "512.0 MiB of its memory are free, 1.0 GiB needed");
  EXPECT_EQ(refusal_of({"gpu", {kWholeUnit, 0}, {}}, one_that_uses(600, "loader")), kOtherKind);
}

TEST(Refusal, NamesWhoWouldBeSlowed) {
  LiveJob other;
  other.id = 7;
  other.sharer = {.name = "matmul", .milli = 300};
  other.share = {300, 0};
  EXPECT_EQ(refusal_of(with(other), one_that_uses(600, "matmul")),
            "it would keep 50 % of its speed there, 70 are the least");
  other.sharer.name = "loader";
  EXPECT_EQ(refusal_of(with(other), one_that_uses(600, "matmul")), "");
}

}  // namespace
}  // namespace tierpilot::sharing
