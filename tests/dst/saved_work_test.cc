// The judge of what jobs have saved sees what it looks for.
#include <gtest/gtest.h>

#include "tests/dst/judge/judge.h"

namespace tierpilot::dst {
namespace {

constexpr int64_t kMsNs = 1'000'000;

std::string verdict(const Judge& judge) {
  return judge.verdict() ? judge.verdict()->invariant : "";
}

SavedWork::Begin from(const std::string& checkpoint) {
  return {.checkpoint = checkpoint, .saves = true};
}

TEST(SavedWork, SeesATryThatBeginsFromLessThanCouldBeHad) {
  const auto judged = [](const std::string& checkpoint) {
    Judge judge({});
    judge.saved_work().saved({7, 1, 10}, 1, 0);
    judge.saved_work().saved({7, 1, 20}, 2, 0);
    judge.saved_work().placed(7, 2, CheckpointName{7, 1, 20}, "can be had");
    judge.saved_work().began(7, 2, from(checkpoint));
    return verdict(judge);
  };
  EXPECT_EQ(judged("checkpoint.7.1.20"), "");
  EXPECT_EQ(judged("checkpoint.7.1.10"), "old-checkpoint");
  EXPECT_EQ(judged(""), "old-checkpoint");
}

TEST(SavedWork, SeesACheckpointThatIsNotTheJobsOrOfItsOwnTry) {
  const auto judged = [](const std::string& checkpoint) {
    Judge judge({});
    judge.saved_work().began(7, 2, from(checkpoint));
    return verdict(judge);
  };
  EXPECT_EQ(judged("checkpoint.7.1.10"), "");
  EXPECT_EQ(judged("checkpoint.8.1.10"), "wrong-checkpoint");
  EXPECT_EQ(judged("checkpoint.7.2.10"), "wrong-checkpoint");
}

TEST(SavedWork, SeesOtherBytesRanksApartAndOneThatWasRemoved) {
  Judge other({});
  other.saved_work().saved({7, 1, 10}, 1, 0);
  other.saved_work().given({7, 1, 10}, 1);
  EXPECT_EQ(verdict(other), "");
  other.saved_work().given({7, 1, 10}, 2);
  EXPECT_EQ(verdict(other), "wrong-checkpoint");

  Judge apart({});
  apart.saved_work().began(7, 2, from("checkpoint.7.1.10"));
  apart.saved_work().began(7, 2, from("checkpoint.7.1.10"));
  EXPECT_EQ(verdict(apart), "");
  apart.saved_work().began(7, 2, from(""));
  EXPECT_EQ(verdict(apart), "wrong-checkpoint");

  Judge removed({});
  removed.saved_work().removed({7, 1, 10});
  removed.saved_work().began(7, 2, from("checkpoint.7.1.10"));
  EXPECT_EQ(verdict(removed), "wrong-checkpoint");
}

TEST(SavedWork, KnowsTheNewestThatIsSafeUntilItIsSpoilt) {
  Judge judge({});
  auto& saved = judge.saved_work();
  saved.saved({7, 1, 10}, 1, 0);
  saved.saved({7, 1, 20}, 2, 0);
  EXPECT_FALSE(saved.newest_safe(7));
  saved.told_safe(7, 10);
  EXPECT_EQ(saved.newest_safe(7), (CheckpointName{7, 1, 10}));
  saved.told_safe(7, 20);
  EXPECT_EQ(saved.newest_safe(7), (CheckpointName{7, 1, 20}));
  EXPECT_FALSE(saved.newest_safe(6));
  saved.spoil("checkpoint.7.1.20");
  EXPECT_FALSE(saved.newest_safe(7));
  EXPECT_EQ(verdict(judge), "");
  saved.told_safe(7, 30);
  EXPECT_EQ(verdict(judge), "old-checkpoint") << "nobody saved it";
}

// `asked_ms`: before its end is told; negative: never.
std::string preempted(int64_t asked_ms, int64_t saved_ms, bool over_the_same, bool heard) {
  constexpr int64_t kNow = 100'000 * kMsNs;
  Judge judge({});
  auto& saved = judge.saved_work();
  const AttemptId attempt{7, 1};
  const auto one = std::make_shared<const int>(1), other = std::make_shared<const int>(2);
  saved.began(7, 1, from(""));
  if (asked_ms >= 0) saved.asked(attempt, one, kNow - asked_ms * kMsNs);
  if (heard) saved.heard(attempt, kNow - asked_ms * kMsNs);
  if (saved_ms >= 0) saved.saved({7, 1, 10}, 1, kNow - saved_ms * kMsNs);
  saved.preempted(attempt, over_the_same ? one : other, kNow);
  return verdict(judge);
}

TEST(SavedWork, SeesAJobThatHasToGoBeforeItsGraceIsOver) {
  EXPECT_EQ(preempted(kPreemptionGraceMs, -1, true, false), "");
  EXPECT_EQ(preempted(kPreemptionGraceMs / 2, -1, true, false), "short-grace");
  EXPECT_EQ(preempted(kPreemptionGraceMs / 2, 100, true, false), "") << "it has saved";
  EXPECT_EQ(preempted(kPreemptionGraceMs, -1, false, false), "short-grace")
      << "what was said over a connection that broke may never have come";
  EXPECT_EQ(preempted(kPreemptionGraceMs, -1, false, true), "") << "it came";
  EXPECT_EQ(preempted(-1, -1, true, false), "short-grace") << "nobody asked it";
}

}  // namespace
}  // namespace tierpilot::dst
