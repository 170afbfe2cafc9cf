#include "coordinator/core/gangs/unit_book.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

constexpr int64_t kStart_ms = 1'700'000'000'000;
constexpr int64_t kMinute_ms = 60'000;

UnitBook six_units() {
  UnitBook book;
  for (const auto* node : {"n1", "n2", "n3"}) {
    NodeFacts facts;
    facts.name = node;
    facts.units = 2;
    book.add(facts, kStart_ms);
  }
  return book;
}

// Six units have been there for a minute: one failure is 10 an hour for each of them.
TEST(UnitBook, AFailureCountsFromTheMomentOnThatItHappened) {
  auto book = six_units();
  const int64_t now_ms = kStart_ms + kMinute_ms;
  book.failed({now_ms, "n2/cpu/0", "signal 9", 7});
  const auto& rates = book.rates(now_ms);
  ASSERT_EQ(rates.size(), 6u);
  EXPECT_GT(rates.at("n1/cpu/0").mean, 1);
  EXPECT_LT(rates.at("n1/cpu/0").mean, 60);
  EXPECT_GT(rates.at("n2/cpu/0").mean, rates.at("n1/cpu/0").mean);
  EXPECT_GT(rates.at("n2/cpu/0").high, rates.at("n2/cpu/0").mean);
}

TEST(UnitBook, AFailureOfAClockThatRunsAheadCountsToo) {
  auto book = six_units();
  book.failed({kStart_ms + 10 * kMinute_ms, "n2/cpu/0", "signal 9", 7});
  EXPECT_GT(book.rates(kStart_ms + kMinute_ms).at("n2/cpu/0").mean, 1);
}

TEST(UnitBook, ARateIsTheSurerTheMoreFailuresItComesFrom) {
  auto book = six_units();
  const int64_t now_ms = kStart_ms + kMinute_ms;
  const double before = book.rates(now_ms).at("n2/cpu/0").shape;
  EXPECT_GT(before, 0);
  for (int i = 0; i < 5; ++i) book.failed({now_ms, "n2/cpu/0", "signal 9", 7});
  EXPECT_GT(book.rates(now_ms).at("n2/cpu/0").shape, before);
}

}  // namespace
}  // namespace tierpilot
