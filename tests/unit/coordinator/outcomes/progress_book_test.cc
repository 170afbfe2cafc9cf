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

TEST(ProgressBook, ForgetsWhoSpokeFirstWhenThereAreTooMany) {
  ProgressBook book;
  for (uint64_t task = 1; task <= ProgressBook::kMostTasks + 5; ++task)
    book.add(task, {.iteration = 1, .loss = {}, .measures = {}});
  EXPECT_TRUE(book.of(5).empty());
  EXPECT_EQ(book.of(6).size(), 1u);
}

}  // namespace
}  // namespace tierpilot
