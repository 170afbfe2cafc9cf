#include "coordinator/core/outcomes/end_waits.h"

#include <gtest/gtest.h>

#include <optional>

namespace tierpilot::testing {
namespace {

TEST(EndWaits, CallsEveryoneOnce) {
  EndWaits waits;
  int calls = 0;
  const auto first = waits.add(7, [&] { ++calls; });
  const auto second = waits.add(7, [&] { ++calls; });
  const auto other = waits.add(8, [&] { calls += 100; });
  waits.ended(7);
  waits.ended(7);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(waits.size(), 1u);
}

TEST(EndWaits, AWaitGoesWithItsCaller) {
  EndWaits waits;
  for (int i = 0; i < 1000; ++i) {
    const auto given_up = waits.add(7, [] { FAIL(); });
    EXPECT_EQ(waits.size(), 1u);
  }
  EXPECT_EQ(waits.size(), 0u);
  waits.ended(7);
}

TEST(EndWaits, ACallMayEndOtherWaits) {
  EndWaits waits;
  int calls = 0;
  std::optional<EndWaits::Wait> second;
  const auto first = waits.add(7, [&] {
    ++calls;
    second.reset();
  });
  second.emplace(waits.add(7, [&] { ++calls; }));
  waits.ended(7);
  EXPECT_EQ(calls, 1);
}

TEST(EndWaits, AWaitMayOutliveThem) {
  auto waits = std::make_unique<EndWaits>();
  const auto wait = waits->add(7, [] {});
  waits.reset();
}

}  // namespace
}  // namespace tierpilot::testing
