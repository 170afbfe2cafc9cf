#include "policies/sim/sharing/job_source.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tierpilot::sharing {
namespace {

std::filesystem::path file(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / ("timed-" + name);
  std::ofstream(path) << text;
  return path;
}

Result<JobSource> from_pods(const std::string& rows) {
  const auto nodes = file("nodes.csv",
                          "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,2,T4\nb,8000,1024,1,A10\n"
                          "c,8000,1024,0,\n");
  const auto pods = file("pods.csv",
                         "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,"
                         "scheduled_time,deletion_time\n" +
                             rows);
  const auto trace = read_pods(pods, nodes);
  if (!trace) return tl::unexpected(trace.error());
  return jobs_of_pods(*trace, "pods");
}

TEST(JobSource, TakesArrivalsRunTimesClassesAndModelsOfPods) {
  const auto source = from_pods(
      "1000,64,1,300,A10,BE,500,510,530\n"
      "1000,64,2,1000,T4|V100,LS,100,100,220\n");
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->units, (std::vector<uint8_t>{0, 0, 1}));
  ASSERT_EQ(source->jobs.size(), 2U);
  const auto& [first, second] = std::tie(source->jobs[0], source->jobs[1]);
  EXPECT_EQ(first.arrival_s, 0) << "counted from the first";
  EXPECT_EQ(first.run_s, 120);
  EXPECT_EQ(first.units, 2U);
  EXPECT_EQ(first.asked_milli, kWholeUnit);
  EXPECT_EQ(first.job_class, JobClass::kLatencySensitive);
  EXPECT_EQ(first.models, 1U);
  EXPECT_EQ(second.arrival_s, 400);
  EXPECT_EQ(second.run_s, 20);
  EXPECT_EQ(second.asked_milli, 300U);
  EXPECT_EQ(second.job_class, JobClass::kBestEffort);
  EXPECT_EQ(second.models, 2U);
}

TEST(JobSource, WhatCannotBeSimulatedIsCountedByItsReason) {
  const auto source = from_pods(
      "1000,64,1,300,,BE,1,2,3\n1000,64,0,0,,BE,1,2,3\n1000,64,1,300,,BE,1,,3\n"
      "1000,64,1,300,,BE,1,5,5\n1000,64,1,300,V100,BE,1,2,3\n1000,64,2,1000,A10,BE,1,2,3\n"
      "1000,64,4,1000,,BE,1,2,3\n1000,64,1,2000,,BE,1,2,3\n");
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->jobs.size(), 1U);
  EXPECT_EQ(source->skipped.at("it asks for no GPU"), 1U);
  EXPECT_EQ(source->skipped.at("it never ran"), 2U);
  EXPECT_EQ(source->skipped.at("no node has a GPU that it names"), 1U);
  EXPECT_EQ(source->skipped.at("no such node has as many GPUs"), 2U);
  EXPECT_EQ(source->skipped.size(), 5U) << "and the row that is no pod";
  EXPECT_NE(source->first_skipped.find(":9"), std::string::npos) << source->first_skipped;
}

TEST(JobSource, AListWithoutJobsIsRefusedWithTheReasons) {
  const auto source = from_pods("1000,64,1,300,,BE,1,,3\n");
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("'pods'"), std::string::npos);
  EXPECT_NE(source.error().message.find("it never ran: 1"), std::string::npos);
}

TEST(JobSource, TakesJobsOfTracesLikePhillys) {
  const auto path = file("philly.csv",
                         "timestamp,duration,num_gpus,cluster\n2017-10-01 00:01:00,50,8,a\n"
                         "2017-10-01 00:00:00,100,1,a\n2017-10-01 00:00:30,10,0.25,a\n"
                         "2017-10-01 00:00:30,10,0,a\n2017-10-01 00:00:30,0,1,a\n"
                         "2017-10-01 00:00:30,10,1000000,a\n");
  const auto source = read_timed_jobs(path, "trace");
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_EQ(source->jobs.size(), 3U);
  EXPECT_TRUE(source->units.empty());
  EXPECT_EQ(source->jobs[0].run_s, 100);
  EXPECT_EQ(source->jobs[0].asked_milli, kWholeUnit);
  EXPECT_FALSE(source->jobs[0].job_class) << "the trace does not tell";
  EXPECT_EQ(source->jobs[1].arrival_s, 30);
  EXPECT_EQ(source->jobs[1].asked_milli, 250U);
  EXPECT_EQ(source->jobs[2].units, 8U);
  uint64_t skipped = 0;
  for (const auto& [_, count] : source->skipped) skipped += count;
  EXPECT_EQ(skipped, 3U);
  EXPECT_FALSE(read_timed_jobs(file("nothing.csv", "a,b\n1,2\n"), "trace"));
  EXPECT_FALSE(read_timed_jobs("/nowhere/philly.csv", "trace"));
}

}  // namespace
}  // namespace tierpilot::sharing
