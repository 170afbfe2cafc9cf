#include "tools/tierload/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tierpilot::tierload {
namespace {

TaskFacts task(int64_t wait_ms, int64_t response_ms, bool succeeded = true) {
  return {.succeeded = succeeded,
          .submitted_ms = 1'000,
          .started_ms = 1'000 + wait_ms,
          .finished_ms = 1'000 + response_ms};
}

TEST(Percentile, IsTheNearestRank) {
  EXPECT_EQ(percentile({7}, 0.99), 7);
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(percentile({1, 2, 3}, 0), 1);
  std::vector<double> values;
  for (int i = 1; i <= 200; ++i) values.push_back(i);
  EXPECT_EQ(percentile(values, 0.99), 198);
  EXPECT_EQ(percentile(values, 1), 200);
}

TEST(Summary, TimesAreOfSucceededTasksOnly) {
  const auto summary = summarize({task(10, 100), task(30, 300), task(9'000, 9'000, false)});
  EXPECT_EQ(summary.tasks, 3u);
  EXPECT_EQ(summary.failed, 1u);
  EXPECT_EQ(summary.wait_ms->mean, 20);
  EXPECT_EQ(summary.wait_ms->p99, 30);
  EXPECT_EQ(summary.response_ms->mean, 200);
}

TEST(Summary, AResponseHasParts) {
  auto a = task(10, 100), b = task(30, 300), failed = task(9, 9, false);
  a.data_ms = 4, a.run_ms = 80, a.cpu_ms = 20;
  b.data_ms = 8, b.run_ms = 240, b.cpu_ms = 60;
  failed.data_ms = failed.run_ms = failed.cpu_ms = 1e6;
  const auto json = summary_json(summarize({a, b, failed}));
  EXPECT_EQ(json["data_ms"]["mean"], 6);
  EXPECT_EQ(json["run_ms"]["mean"], 160);
  EXPECT_EQ(json["cpu_ms"]["mean"], 40);
}

TEST(Summary, LocalShareIsOfAllBytesServed) {
  auto a = task(1, 2), b = task(1, 2);
  a.local_bytes = 300;
  b.promoted_bytes = 60;
  b.fetched_bytes = 40;
  b.evicted_bytes = 5;
  const auto summary = summarize({a, b});
  EXPECT_EQ(*summary.local_byte_share, 0.75);
  EXPECT_EQ(summary.evicted_bytes, 5u);
}

TEST(Summary, WhatThereIsNotIsNullWithAReason) {
  const auto json = summary_json(summarize({}));
  EXPECT_TRUE(json["wait_ms"]["mean"].is_null());
  EXPECT_EQ(json["wait_ms"]["mean_unavailable"], "no task succeeded");
  EXPECT_TRUE(json["local_byte_share"].is_null());
  EXPECT_EQ(json["local_byte_share_unavailable"], "no task was served any data");
}

}  // namespace
}  // namespace tierpilot::tierload
