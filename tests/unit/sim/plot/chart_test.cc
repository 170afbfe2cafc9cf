#include "policies/sim/plot/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cmath>
#include <cstdio>
#include <sstream>

namespace tierpilot::sim::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kNastyName = "<b>&\"\x01\xff";

// Throws where the text is not well-formed XML.
void expect_xml(const std::string& svg) {
  std::istringstream in(svg);
  boost::property_tree::ptree tree;
  EXPECT_NO_THROW(read_xml(in, tree)) << svg.substr(0, 500);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

// Every coordinate of every path.
std::vector<Point> drawn(const std::string& svg) {
  std::vector<Point> points;
  for (size_t at = svg.find_first_of("ML"); at != svg.npos; at = svg.find_first_of("ML", at + 1)) {
    double x = 0, y = 0;
    if (std::sscanf(svg.c_str() + at + 1, "%lf %lf", &x, &y) == 2) points.push_back({x, y});
  }
  return points;
}

Chart line(std::vector<Point> points) {
  return {.title = "title",
          .x = {.title = "x"},
          .y = {.title = "y"},
          .series = {{.name = "one", .points = std::move(points)}}};
}

TEST(Chart, TextIsEscapedAndCutToFit) {
  auto chart = line({{0, 1}, {1, 2}});
  chart.title = kNastyName + std::string(5000, 'w');
  chart.note = chart.x.title = chart.y.title = chart.title;
  chart.series.push_back({.name = chart.title, .points = {{0, 2}}});
  const auto svg = to_svg(chart);
  expect_xml(svg);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp;&quot;\uFFFD\uFFFD"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(Chart, GapsWhereThereIsNoNumber) {
  std::vector<Point> points;
  for (int x = 0; x < 100; ++x)
    points.push_back({x * 1.0, x >= 40 && x < 60 ? NAN : x == 80 ? INFINITY : 1.0});
  points.push_back({NAN, 5});
  const auto svg = to_svg(line(points));
  expect_xml(svg);
  const auto path = svg.find("<path");
  EXPECT_EQ(std::ranges::count(svg.substr(path, svg.find("/>", path) - path), 'M'), 3)
      << "two gaps make three pieces";
}

TEST(Chart, WhateverTheValuesThePictureHolds) {
  for (const auto& points : std::vector<std::vector<Point>>{{},
                                                            {{1, 1}},
                                                            {{0, 0}, {0, 0}},
                                                            {{NAN, NAN}},
                                                            {{-1e308, 1e308}, {1e308, -1e308}},
                                                            {{1e-308, 1e-310}, {2e-308, 3e-310}},
                                                            {{1e17, 1e17}, {1e17 + 16, 1e17 + 32}},
                                                            {{-5, -5}, {-4, -5}},
                                                            {{3, 1}, {1, 2}, {2, 3}}})
    for (const bool log : {false, true})
      for (const auto unit : {Unit::kNumber, Unit::kNanoseconds, Unit::kBytes, Unit::kShare}) {
        auto chart = line(points);
        chart.x.log = chart.y.log = log;
        chart.x.unit = chart.y.unit = unit;
        chart.series[0].band = {{0, -1, 1}, {1, NAN, 2}, {2, 0, INFINITY}};
        const auto svg = to_svg(chart);
        expect_xml(svg);
        EXPECT_LT(svg.size(), 20'000u);
        for (const auto& [x, y] : drawn(svg)) {
          EXPECT_GE(x, 0);
          EXPECT_LE(x, 640);
          EXPECT_GE(y, 0);
          EXPECT_LE(y, 380);
        }
      }
}

TEST(Chart, AMillionPointsAreASmallPicture) {
  std::vector<Point> points;
  for (int i = 0; i < 1'000'000; ++i)
    points.push_back({i * 1.0, i == 500'000 ? 9 : std::sin(i * 0.01) + (i % 7) * 0.1});
  const auto svg = to_svg(line(points));
  EXPECT_LT(svg.size(), 60'000u);
  double top = 1e9;
  for (const auto& point : drawn(svg)) top = std::min(top, point.y);
  const auto without = [&] {
    points[500'000].y = 0;
    double lowest = 1e9;
    auto chart = line(points);
    chart.y.max = 10;
    for (const auto& point : drawn(to_svg(chart))) lowest = std::min(lowest, point.y);
    return lowest;
  }();
  EXPECT_LT(top, without - 50) << "one point that stands out is not lost";
}

TEST(Chart, EqualChartsEqualText) {
  const auto chart = line({{0, 1}, {1, 3}, {2, 2}});
  EXPECT_EQ(to_svg(chart), to_svg(chart));
}

TEST(Chart, OneLineNeedsNoLegend) {
  EXPECT_THAT(to_svg(line({{0, 1}, {1, 3}})), Not(HasSubstr(">one<")));
  auto chart = line({{0, 1}, {1, 3}});
  chart.series.push_back({.name = "two", .points = {{0, 1}}});
  EXPECT_THAT(to_svg(chart), HasSubstr(">one<"));
}

TEST(Chart, TooManyLinesAreSaid) {
  auto chart = line({{0, 1}, {1, 3}});
  for (int i = 0; i < 1000; ++i)
    chart.series.push_back({.name = "s" + std::to_string(i), .points = {{0, 1}, {1, 2}}});
  const auto svg = to_svg(chart);
  EXPECT_LT(svg.size(), 40'000u);
  EXPECT_THAT(svg, HasSubstr("24 of 1001 lines"));
}

TEST(BarChart, BarsWhiskersAndWhatIsMissing) {
  BarChart chart{.title = "bars",
                 .y = {.title = "y", .unit = Unit::kNanoseconds},
                 .groups = {"a", kNastyName, "c"},
                 .series = {{.name = "p", .bars = {{2e9, 1e9, 3e9}, {NAN}, {-1e9}}},
                            {.name = "q", .bars = {{1e9, NAN, 2e9}}}}};
  const auto svg = to_svg(chart);
  expect_xml(svg);
  const auto count = [&svg](const std::string& what) {
    size_t n = 0;
    for (size_t at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("<rect"), 3u + 2u) << "three bars and two of the legend";
  EXPECT_EQ(count("class=\"whisker\""), 3u) << "one with both ends, of three strokes";
  EXPECT_THAT(svg, HasSubstr("y (s)"));
}

TEST(BarChart, ManyGroupsAreCutAndSaid) {
  BarChart chart{.title = "bars", .y = {.title = "y"}, .groups = {}, .series = {{.name = "p"}}};
  for (int i = 0; i < 5000; ++i) {
    chart.groups.push_back("a group with a long name " + std::to_string(i));
    chart.series[0].bars.push_back({i * 1.0});
  }
  const auto svg = to_svg(chart);
  expect_xml(svg);
  EXPECT_LT(svg.size(), 40'000u);
  EXPECT_THAT(svg, HasSubstr("The first 60 of 5000 groups"));
}

TEST(Page, HoldsItsChartsSideBySide) {
  Page page{.title = "page", .charts = {line({{0, 1}, {1, 2}}), BarChart{}, Chart{}}};
  const auto svg = to_svg(page);
  expect_xml(svg);
  EXPECT_THAT(svg, HasSubstr("page"));
  expect_xml(to_svg(Page{}));
  page.columns = 0;
  expect_xml(to_svg(page));
}

}  // namespace
}  // namespace tierpilot::sim::plot
