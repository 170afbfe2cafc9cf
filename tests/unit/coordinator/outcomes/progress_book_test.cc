#include "coordinator/core/outcomes/progress_book.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(ProgressBook, KeepsAThinnedSeriesWithItsBeginAndItsNewestReport) {
  ProgressBook book;
  for (uint64_t i = 1; i <= 10'000; ++i) {
    book.add(7, {.iteration = i, .loss = {}, .measures = {}});
    const auto& points = book.of(7);
    ASSERT_LE(points.size(), ProgressBook::kMostPoints + 1);
    ASSERT_EQ(points.back().iteration, i);
    ASSERT_EQ(points.front().iteration, 1u);
    for (size_t k = 1; k < points.size(); ++k)
      ASSERT_LT(points[k - 1].iteration, points[k].iteration);
  }
  const auto& points = book.of(7);
  EXPECT_GT(points.size(), ProgressBook::kMostPoints / 3);
  for (size_t k = 1; k < points.size(); ++k)
    EXPECT_LE(points[k].iteration - points[k - 1].iteration, 300u) << "it is even";
}

TEST(ProgressBook, OfManyItKeepsFewerPointsOfEachAndForgetsNone) {
  constexpr uint64_t kTasks = ProgressBook::kMostOfAll / ProgressBook::kMostPoints * 3;
  ProgressBook book;
  for (uint64_t i = 1; i <= 300; ++i)
    for (uint64_t task = 1; task <= kTasks; ++task)
      book.add(task, {.iteration = i, .loss = {}, .measures = {}});
  size_t points = 0;
  for (uint64_t task = 1; task <= kTasks; ++task) {
    const auto& series = book.of(task);
    points += series.size();
    ASSERT_GE(series.size(), ProgressBook::kMostPoints / 8) << task;
    ASSERT_EQ(series.front().iteration, 1U);
    ASSERT_EQ(series.back().iteration, 300U);
  }
  EXPECT_LE(points, ProgressBook::kMostOfAll + 2 * kTasks);
}

TEST(ProgressBook, OnceFewAreLeftASeriesGrowsAgain) {
  constexpr uint64_t kTasks = ProgressBook::kMostOfAll / ProgressBook::kMostPoints * 3;
  ProgressBook book;
  for (uint64_t task = 1; task <= kTasks; ++task)
    book.add(task, {.iteration = 1, .loss = {}, .measures = {}});
  for (uint64_t task = 2; task <= kTasks; ++task) book.forget(task);
  for (uint64_t i = 2; i <= 1000; ++i) book.add(1, {.iteration = i, .loss = {}, .measures = {}});
  EXPECT_GT(book.of(1).size(), ProgressBook::kMostPoints / 3);
}

TEST(ProgressBook, ForgetsWhoSpokeFirstWhenThereAreTooMany) {
  constexpr uint64_t kMostTasks = ProgressBook::kMostOfAll / ProgressBook::kFewestPoints;
  ProgressBook book;
  for (uint64_t task = 1; task <= kMostTasks + 5; ++task)
    book.add(task, {.iteration = 1, .loss = {}, .measures = {}});
  EXPECT_TRUE(book.of(5).empty());
  EXPECT_EQ(book.of(6).size(), 1U);
}

}  // namespace
}  // namespace tierpilot
