#include "policies/sim/trace/options_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierpilot::sim {
namespace {

using testing::HasSubstr;

TEST(TraceOptionsReader, EveryKeyCounts) {
  auto reader = ConfigReader::parse(R"(
[trace]
from_hours = 24
until_hours = 48.5
max_tasks = 1000
rate = 1.5
max_units = 64
max_gpus = 8
units_per_gpu = 6
[datasets]
seed = 9
tasks_per_dataset = 4
shared_datasets = 3
zipf_slope = 1.1
repeat = 0.25
shared = 0.5
another = 0.1
max_per_task = 2
write = 0.05
median = "512MiB"
sigma = 2
min = "1KiB"
max = "8GiB"
memory_median = "2GiB"
memory_sigma = 0.5
)",
                                    "options.toml");
  ASSERT_TRUE(reader);
  const auto options = read_trace_options(*reader);
  const auto status = reader->finish();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(options.from_ns, 86'400'000'000'000);
  EXPECT_EQ(options.until_ns, 174'600'000'000'000);
  EXPECT_EQ(options.max_tasks, 1000u);
  EXPECT_EQ(options.rate, 1.5);
  EXPECT_EQ(options.max_units, 64u);
  EXPECT_EQ(options.max_gpus, 8u);
  EXPECT_EQ(options.units_per_gpu, 6u);
  ASSERT_TRUE(options.datasets);
  const auto& model = *options.datasets;
  EXPECT_EQ(model.seed, 9u);
  EXPECT_EQ(model.tasks_per_dataset, 4);
  EXPECT_EQ(model.shared_datasets, 3u);
  EXPECT_EQ(model.zipf_slope, 1.1);
  EXPECT_EQ(model.repeat, 0.25);
  EXPECT_EQ(model.shared, 0.5);
  EXPECT_EQ(model.another, 0.1);
  EXPECT_EQ(model.max_per_task, 2u);
  EXPECT_EQ(model.write, 0.05);
  EXPECT_EQ(model.median_bytes, 0x1p29);
  EXPECT_EQ(model.sigma, 2);
  EXPECT_EQ(model.min_bytes, 1024u);
  EXPECT_EQ(model.max_bytes, uint64_t{8} << 30);
  EXPECT_EQ(model.memory_median_bytes, 0x1p31);
  EXPECT_EQ(model.memory_sigma, 0.5);
}

TEST(TraceOptionsReader, NothingSaidIsTheDefault) {
  auto reader = ConfigReader::parse("[trace]\nmodel_datasets = false\n", "options.toml");
  const auto options = read_trace_options(*reader);
  EXPECT_TRUE(reader->finish());
  EXPECT_FALSE(options.datasets);
  EXPECT_EQ(options.until_ns, TraceOptions{}.until_ns);
  EXPECT_EQ(options.max_tasks, TraceOptions{}.max_tasks);
}

TEST(TraceOptionsReader, WhatIsWrongIsNamed) {
  auto reader = ConfigReader::parse("[trace]\nrate = 0\n[datasets]\nmin = 5\nmax = 4\nsize = 1\n",
                                    "options.toml");
  read_trace_options(*reader);
  const auto status = reader->finish();
  ASSERT_FALSE(status);
  for (const char* word : {"options.toml:2", "rate", "larger than max", "size"})
    EXPECT_THAT(status.error().message, HasSubstr(word));
}

}  // namespace
}  // namespace tierpilot::sim
