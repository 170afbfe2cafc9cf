// Which segments are computed again, by what copies and computing take.
#include "policies/swap/learning/segments.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kMb = 1'000'000;

SegmentedStep step_of(int64_t over_bytes) {
  return {.segments = {{.place = 1, .compute_ns = 4 * kMs, .freed_bytes = 10 * kMb},
                       {.place = 2, .compute_ns = 1 * kMs, .freed_bytes = 10 * kMb},
                       {.place = 3, .compute_ns = 2 * kMs, .freed_bytes = 10 * kMb}},
          .over_bytes = over_bytes,
          .forward_ns = 10 * kMs,
          .backward_ns = 20 * kMs};
}

TEST(Segments, WhereAllFitsNothingIsComputedAgain) {
  EXPECT_EQ(choose_segments(step_of(0), {}).again, std::vector<char>(3));
  EXPECT_EQ(choose_segments(step_of(-5), {.gb_per_s = 1}).again, std::vector<char>(3));
  EXPECT_TRUE(choose_segments({.over_bytes = 5}, {}).again.empty());
}

TEST(Segments, AFastLinkHidesCopiesAndASlowOneDoesNot) {
  EXPECT_EQ(choose_segments(step_of(15 * kMb), {.gb_per_s = 100}).again, std::vector<char>(3));
  // 15 MB at 0.1 GB/s take 150 ms each way: two segments of 3 ms together are cheaper.
  EXPECT_EQ(choose_segments(step_of(15 * kMb), {.gb_per_s = 0.1}).again,
            (std::vector<char>{0, 1, 1}));
}

// 12 MB at 1 GB/s are 12 ms, 2 more than the forward pass hides, and the cheapest segment is 1 ms.
TEST(Segments, OnlyWhatTheLinkCannotHideIsComputedAgain) {
  EXPECT_EQ(choose_segments(step_of(12 * kMb), {.gb_per_s = 1}).again,
            (std::vector<char>{0, 1, 0}));
}

TEST(Segments, WithoutALinkAsManyAsItTakesCheapestFirst) {
  EXPECT_EQ(choose_segments(step_of(5 * kMb), {}).again, (std::vector<char>{0, 1, 0}));
  EXPECT_EQ(choose_segments(step_of(11 * kMb), {}).again, (std::vector<char>{0, 1, 1}));
  EXPECT_EQ(choose_segments(step_of(90 * kMb), {}).again, (std::vector<char>{1, 1, 1}));
}

TEST(Segments, WhatCannotBeOrFreesNothingIsLeftOut) {
  auto step = step_of(90 * kMb);
  step.segments[0].possible = false;
  step.segments[1].freed_bytes = 0;
  EXPECT_EQ(choose_segments(step, {}).again, (std::vector<char>{0, 0, 1}));
}

TEST(Segments, WhatDoesNotComeBackAtOnceIsNotComputedAgain) {
  auto step = step_of(90 * kMb);
  step.segments[1].freed_bytes = 30 * kMb;
  step.room_bytes = 50 * kMb;
  EXPECT_EQ(choose_segments(step, {}).again, (std::vector<char>{1, 0, 1}));
  EXPECT_EQ(choose_segments(step, {.gb_per_s = 0.1}).again, (std::vector<char>{1, 0, 1}));
}

struct Trainer {
  SegmentLearner learner{true, false};
  double gb_per_s = 1;
  int64_t slower = 1;
  // Whether the segment at place 2 was computed again.
  bool step(int64_t without_ns, int64_t with_ns, bool fits_without = true) {
    auto step = step_of(12 * kMb);
    step.forward_ns *= slower, step.backward_ns *= slower;
    bool again = false;
    for (const auto& segment : step.segments) again = learner.begin(segment.place) || again;
    const bool with = learner.recomputes();
    EXPECT_EQ(again, with);
    learner.end(with ? nullptr : &step, {.gb_per_s = gb_per_s}, with ? with_ns : without_ns,
                with || fits_without);
    return again;
  }
};

TEST(SegmentLearner, KeepsWhatIsMeasuredToBeFaster) {
  for (const bool faster : {true, false}) {
    Trainer trainer;
    EXPECT_FALSE(trainer.step(100, 90)) << "the first step is measured";
    int with = 0;
    for (int i = 0; i < 40; ++i) with += trainer.step(100, faster ? 90 : 110);
    EXPECT_GT(with, 0) << "it was tried";
    EXPECT_EQ(trainer.step(100, faster ? 90 : 110), faster);
  }
}

TEST(SegmentLearner, AFewStepsTellALargeDifference) {
  for (const bool faster : {true, false}) {
    Trainer trainer{.gb_per_s = 0.1};
    int without = 0;
    for (int i = 0; i < 10; ++i) without += !trainer.step(100, faster ? 50 : 105);
    EXPECT_LT(without, 7) << "that it is slow was foretold";
    int with = 0;
    for (int i = 0; i < 40; ++i) with += trainer.step(100, faster ? 50 : 105);
    EXPECT_EQ(with, faster ? 40 : 4) << "a small one takes as many as ever";
  }
}

TEST(SegmentLearner, WhatDoesNotFitLoses) {
  Trainer trainer;
  for (int i = 0; i < 40; ++i) (void)trainer.step(100, 150, false);
  EXPECT_TRUE(trainer.step(100, 150, false));
}

// Computing that takes a hundred times as long hides all copies.
TEST(SegmentLearner, TheFirstStepTellsNothingOfTimes) {
  Trainer trainer{.gb_per_s = 0.1};
  trainer.slower = 100;
  (void)trainer.step(100, 50);
  trainer.slower = 1;
  for (int i = 0; i < 20; ++i) (void)trainer.step(100, 50);
  EXPECT_TRUE(trainer.step(100, 50));
}

TEST(SegmentLearner, AStepThatOthersSlowedIsMeasuredAgain) {
  Trainer trainer{.gb_per_s = 0.1};
  for (const int64_t slower : {1, 100, 1}) {
    trainer.slower = slower;
    (void)trainer.step(100, 50);
  }
  for (int i = 0; i < 20; ++i) (void)trainer.step(100, 50);
  EXPECT_TRUE(trainer.step(100, 50));
}

// As where its first steps had no segments, or another run knew it.
TEST(SegmentLearner, AStepThatNobodyLookedAtIsAskedFor) {
  Trainer trainer;
  const auto unseen = [&] {
    for (const auto& segment : step_of(12 * kMb).segments)
      (void)trainer.learner.begin(segment.place);
    trainer.learner.end(nullptr, {.gb_per_s = 1}, 100, true);
  };
  EXPECT_FALSE(trainer.learner.asks_to_measure());
  unseen();
  EXPECT_TRUE(trainer.learner.asks_to_measure());
  trainer.learner.end(nullptr, {.gb_per_s = 1}, 100, true);
  EXPECT_TRUE(trainer.learner.asks_to_measure()) << "one without segments came between";
  (void)trainer.step(100, 90);
  EXPECT_FALSE(trainer.learner.asks_to_measure()) << "it was seen";
  int with = 0;
  for (int i = 0; i < 20; ++i) with += trainer.step(100, 90);
  EXPECT_GT(with, 0);
}

TEST(SegmentLearner, WhatIsNeverLookedAtIsAskedForAFewTimes) {
  SegmentLearner learner(true, false);
  int asked = 0;
  for (int i = 0; i < 100; ++i) {
    (void)learner.begin(1);
    learner.end(nullptr, {.gb_per_s = 1}, 100, true);
    asked += learner.asks_to_measure();
  }
  EXPECT_GT(asked, 0);
  EXPECT_LT(asked, 20);
  SegmentLearner unsaved(true, false);
  (void)unsaved.begin(1);
  unsaved.end(nullptr, {.gb_per_s = 1}, 0, false);
  EXPECT_FALSE(unsaved.asks_to_measure()) << "an evaluation saves nothing";
}

// A net whose segments free less than was reckoned: what was over the budget was more.
struct Underrated {
  SegmentLearner learner{true, false};
  int64_t third_ns = 0;  // that the third segment takes a step, to be computed again

  // How many were computed again. A segment less to be copied is 30 ns.
  int step() {
    auto step = step_of(15 * kMb);
    int again = 0;
    int64_t step_ns = 200;
    for (auto& segment : step.segments) {
      if (!learner.begin(segment.place)) continue;
      ++again;
      step_ns -= segment.place == 1 ? 30 - third_ns : 30;
      segment.freed_bytes = 0;
    }
    learner.end(&step, {.gb_per_s = 0.1}, step_ns, true);
    return again;
  }
};

TEST(SegmentLearner, MoreAreComputedAgainWhereMuchIsStillToBeCopied) {
  Underrated trainer;
  for (int i = 0; i < 60; ++i) (void)trainer.step();
  EXPECT_EQ(trainer.step(), 3) << "15 MB asked for two";
}

TEST(SegmentLearner, WhatWasAddedGoesWhereItIsSlower) {
  Underrated trainer{.third_ns = 50};
  int most = 0;
  for (int i = 0; i < 60; ++i) most = std::max(most, trainer.step());
  EXPECT_EQ(most, 3) << "it was tried";
  EXPECT_EQ(trainer.step(), 2);
}

TEST(SegmentLearner, RulesAllAndNone) {
  const auto step = step_of(0);
  for (const bool all : {true, false}) {
    SegmentLearner learner(false, all);
    for (int i = 0; i < 2; ++i) {
      for (const auto& segment : step.segments)
        EXPECT_EQ(learner.begin(segment.place), all && i > 0);
      learner.end(learner.recomputes() ? nullptr : &step, {}, 100, true);
    }
  }
}

}  // namespace
}  // namespace tierpilot::swap
