#include "daemon/agent/link/bounded_reports.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>

#include <set>

#include "daemon/agent/link/wire.h"

namespace tierpilot::agent {
namespace {

// As many measures as a job may name, with names as long as they may be.
std::vector<JobReport> reports(uint64_t attempts, uint32_t each, size_t measures = 32) {
  std::vector<JobReport> all;
  for (uint64_t task = 1; task <= attempts; ++task)
    for (uint32_t i = 1; i <= each; ++i) {
      JobReport report{.attempt = {task, 1}, .at_ms = i, .progress = {.iteration = i}};
      for (size_t m = 0; m < measures; ++m)
        report.progress.measures.emplace_back(std::string(64, 'm'), 1.0);
      all.push_back(std::move(report));
    }
  for (uint64_t task = 1; task <= attempts; ++task)
    all.push_back({.attempt = {task, 1}, .at_ms = each, .progress = {}, .cpu_ns = 1});
  return all;
}

size_t message_bytes(const std::vector<JobReport>& reports) {
  capnp::MallocMessageBuilder message;
  auto jobs = message.initRoot<wire::NodeSession::UpdateParams>().initJobs(
      static_cast<uint32_t>(reports.size()));
  for (uint32_t i = 0; i < jobs.size(); ++i) write_job_report(jobs[i], reports[i]);
  return capnp::computeSerializedSizeInWords(message) * sizeof(capnp::word);
}

TEST(BoundedReports, WhatFitsIsToldAsItIs) {
  const auto few = reports(3, 16);
  EXPECT_EQ(bounded(few, kMostReportBytes).size(), few.size());
}

TEST(BoundedReports, OfTooManyTheNewestOfEachJobIsTold) {
  ASSERT_GT(message_bytes(reports(100, 16)), 4U << 20) << "more than a message may have";
  const auto told = bounded(reports(100, 16), kMostReportBytes);
  EXPECT_LE(message_bytes(told), kMostReportBytes);
  std::set<uint64_t> said, used;
  for (const auto& report : told) {
    if (report.cpu_ns > 0) used.insert(report.attempt.task);
    if (report.cpu_ns > 0) continue;
    said.insert(report.attempt.task);
    EXPECT_EQ(report.progress.iteration, 16U);
    EXPECT_EQ(report.progress.measures.size(), 32U);
  }
  EXPECT_EQ(said.size(), 100U);
  EXPECT_EQ(used.size(), 100U);
}

TEST(BoundedReports, NoNumberOfJobsIsTooMany) {
  for (const uint64_t jobs : {1'000, 4'000, 20'000}) {
    const auto told = bounded(reports(jobs, 2), kMostReportBytes);
    EXPECT_LE(message_bytes(told), kMostReportBytes);
    EXPECT_GE(told.size(), std::min<uint64_t>(2 * jobs, kMostReportBytes / 300));
  }
}

}  // namespace
}  // namespace tierpilot::agent
