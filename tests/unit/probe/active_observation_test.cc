#include "daemon/probe/active/observation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/probe/active/json.h"

namespace tierpilot {
namespace {

ProbeObservation value(std::string_view figure, double value) {
  return {.figure = std::string(figure), .value = value};
}

Ledger dram_ledger() {
  return Ledger({.name = "dram0", .kind = "dram", .numa_node = 0});
}

TEST(ProbeObservation, SurvivesTheLine) {
  const ProbeObservation sent{
      .tier = 3, .figure = "latency_ns", .text = "why", .latency_counts = {{90, 5}, {120, 1}}};
  const auto got = observation_from_line(observation_to_line(sent));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->tier, 3U);
  EXPECT_EQ(got->figure, "latency_ns");
  EXPECT_EQ(got->text, "why");
  EXPECT_EQ(got->latency_counts, sent.latency_counts);
  EXPECT_FALSE(got->value);
  EXPECT_EQ(observation_from_line(observation_to_line(value("x", 2.5)))->value, 2.5);
}

TEST(ProbeObservation, GarbageIsRefused) {
  for (const char* line : {"", "{", "[]", "{}", "null", R"({"tier":"x"})",
                           R"({"tier":0,"figure":1,"text":"","counts":[]})",
                           R"({"tier":0,"figure":"f","text":"","counts":[[1]]})"})
    EXPECT_FALSE(observation_from_line(line)) << line;
}

TEST(Ledger, TakesMediansOverRounds) {
  auto ledger = dram_ledger();
  for (const double v : {1.0, 100.0, 3.0}) ledger.add(value(figure::kRead, v));
  for (const double v : {2.0, 4.0}) ledger.add(value(figure::kWrite, v));
  const auto result = ledger.measurement();
  EXPECT_EQ(result.read_gb_per_s.value, 3.0);
  EXPECT_EQ(result.write_gb_per_s.value, 3.0);
  EXPECT_EQ(result.rounds, 3);
}

TEST(Ledger, MergesLatenciesAndTellsTheirSpread) {
  auto ledger = dram_ledger();
  for (const uint64_t ns : {100, 200, 160})
    ledger.add(
        {.figure = std::string(figure::kLatency), .latency_counts = {{ns, 99}, {10 * ns, 1}}});
  const auto result = ledger.measurement();
  EXPECT_EQ(result.latency_ns.count(), 300U);
  EXPECT_NEAR(*result.latency_p50_ns.value, 160, 160 / 8);
  EXPECT_NEAR(result.spread, 100.0 / 160, 0.2);
  EXPECT_GE(*result.latency_p99_ns.value, *result.latency_p50_ns.value);
}

TEST(Ledger, TheQualityIsThatOfTheWorstFigureButNotOfASinglePagesStall) {
  auto ledger = dram_ledger();
  for (const double v : {10.0, 10.1, 10.2}) ledger.add(value(figure::kRead, v));
  for (const double v : {10.0, 12.0, 10.0}) ledger.add(value(figure::kWrite, v));
  for (const double v : {1e3, 9e3, 4e5}) ledger.add(value(figure::kFirstEvict, v));
  auto result = ledger.measurement();
  result.surroundings = {.cpus = 2, .others_cpu_share = 0.0};
  EXPECT_NEAR(result.spread, 0.2, 1e-9);
  EXPECT_EQ(result.quality().grade, Grade::kFair);
  EXPECT_EQ(result.quality().reason.find("write_gb_per_s: spread 20.0 %"), 0U)
      << result.quality().reason;
  EXPECT_EQ(result.quality("read_gb_per_s").grade, Grade::kGood);
  EXPECT_EQ(result.quality("evict_first_page_ns").grade, Grade::kNoisy);
}

TEST(Ledger, WhatIsMissingHasItsFirstReason) {
  auto ledger = dram_ledger();
  ledger.add({.figure = std::string(figure::kEvict), .text = "move_pages refused"});
  ledger.explain_missing(figure::kEvict, "the process died");
  const auto result = ledger.measurement();
  EXPECT_FALSE(result.evict_gb_per_s.value);
  EXPECT_EQ(result.evict_gb_per_s.unavailable, "move_pages refused");
  EXPECT_FALSE(result.latency_p50_ns.unavailable.empty());
}

TEST(MeasurementJson, HasTheFiguresAndReasonsSideBySide) {
  auto ledger = dram_ledger();
  ledger.add(value(figure::kRead, 12.5));
  ledger.explain_missing(figure::kEvict, "no slower tier");
  const auto json = measurement_to_json(ledger.measurement());
  EXPECT_EQ(json["tier"], "dram0");
  EXPECT_EQ(json["kind"], "dram");
  EXPECT_EQ(json["read_gb_per_s"], 12.5);
  EXPECT_FALSE(json.contains("read_gb_per_s_unavailable"));
  EXPECT_TRUE(json["evict_gb_per_s"].is_null());
  EXPECT_EQ(json["evict_gb_per_s_unavailable"], "no slower tier");
  EXPECT_TRUE(json["latency_ns"]["p50"].is_null());
  EXPECT_TRUE(json["latency_ns"].contains("p50_unavailable"));
  EXPECT_TRUE(json["directory"].is_null());
}

}  // namespace
}  // namespace tierpilot
