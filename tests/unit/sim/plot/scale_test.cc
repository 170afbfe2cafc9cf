#include "policies/sim/plot/scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tierpilot::sim::plot {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Le;

struct Drawn {
  std::vector<std::string> labels;
  std::string title;
};

Drawn scale(Axis axis, double low, double high, int most = 6, bool round = false) {
  Range range(axis.log);
  range.add(low);
  range.add(high);
  axis.title = "t";
  const AxisScale scale(axis, range, 0, 100, most, round);
  Drawn drawn{.labels = {}, .title = scale.title()};
  double before = -1;
  for (const auto& tick : scale.ticks()) {
    drawn.labels.push_back(tick.label);
    EXPECT_GT(tick.px, before);
    EXPECT_LE(tick.px, 100.0001);
    before = tick.px;
  }
  return drawn;
}

TEST(AxisScale, NumbersHaveRoundTicks) {
  EXPECT_THAT(scale({}, 0, 10).labels, ElementsAre("0", "2", "4", "6", "8", "10"));
  EXPECT_THAT(scale({}, 0, 0.5).labels, ElementsAre("0.0", "0.1", "0.2", "0.3", "0.4", "0.5"));
  EXPECT_THAT(scale({}, 0, 50'000).labels,
              ElementsAre("0", "10,000", "20,000", "30,000", "40,000", "50,000"));
  EXPECT_THAT(scale({}, -4, 4).labels, ElementsAre("-4", "-2", "0", "2", "4"));
  EXPECT_EQ(scale({}, 0, 4e6).title, "t (million)");
}

TEST(AxisScale, DurationsHaveTheirUnit) {
  const Axis axis{.unit = Unit::kNanoseconds};
  EXPECT_EQ(scale(axis, 0, 700).title, "t (ns)");
  EXPECT_EQ(scale(axis, 0, 7e4).title, "t (µs)");
  EXPECT_EQ(scale(axis, 0, 90e9).title, "t (s)");
  EXPECT_THAT(scale(axis, 0, 90e9).labels, ElementsAre("0", "15", "30", "45", "60", "75", "90"));
  EXPECT_EQ(scale(axis, 0, 5 * 3600e9).title, "t (h)");
  EXPECT_THAT(scale(axis, 0, 30 * 3600e9, 6).labels, ElementsAre("0", "6", "12", "18", "24", "30"));
  EXPECT_EQ(scale(axis, 0, 51 * 86400e9).title, "t (d)");
}

TEST(AxisScale, SharesArePercentAndBytesAreBinary) {
  EXPECT_THAT(scale({.unit = Unit::kShare}, 0, 1).labels,
              ElementsAre("0 %", "20 %", "40 %", "60 %", "80 %", "100 %"));
  EXPECT_EQ(scale({.unit = Unit::kBytes}, 0, 8e9).title, "t (GiB)");
}

TEST(AxisScale, LogTicksAreDecadesOrUnits) {
  EXPECT_THAT(scale({.log = true}, 1, 1000).labels, ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(scale({.log = true}, 2, 30).labels, ElementsAre("2", "5", "10", "20"));
  EXPECT_THAT(scale({.unit = Unit::kNanoseconds, .log = true}, 5e6, 7e12, 9).labels,
              ElementsAre("10 ms", "100 ms", "1 s", "10 s", "1 min", "10 min", "1 h"));
  EXPECT_THAT(scale({.unit = Unit::kBytes, .log = true}, 1000, 1e13, 5).labels,
              ElementsAre("1 KiB", "1 MiB", "1 GiB", "1 TiB"));
}

TEST(AxisScale, RoundEndsHoldTheData) {
  EXPECT_THAT(scale({}, 0, 93, 6, true).labels, ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(scale({.max = 93.0}, 0, 93, 6, true).labels, ElementsAre("0", "20", "40", "60", "80"))
      << "unless its end was given";
}

TEST(AxisScale, BeginsAtZeroWhereThatIsNotFar) {
  EXPECT_EQ(scale({}, 30, 100).labels.front(), "0");
  EXPECT_NE(scale({}, 90, 100).labels.front(), "0");
}

TEST(AxisScale, ValuesAreHeldWithin) {
  Range range(false);
  range.add(0);
  range.add(10);
  range.add(NAN);
  range.add(INFINITY);
  const AxisScale scale({}, range, 100, 0, 5, false);
  EXPECT_DOUBLE_EQ(scale.pixel(5), 50);
  EXPECT_DOUBLE_EQ(scale.pixel(-3), 100);
  EXPECT_DOUBLE_EQ(scale.pixel(1e300), 0);
  EXPECT_TRUE(std::isnan(scale.pixel(NAN)));
}

TEST(AxisScale, NoValuesAreAnAxisToo) {
  for (const bool log : {false, true}) {
    const AxisScale scale({.log = log}, Range(log), 0, 100, 5, true);
    EXPECT_FALSE(scale.ticks().empty());
  }
}

}  // namespace
}  // namespace tierpilot::sim::plot
