// Lines of the job channel.
#include "daemon/agent/job_channel/job_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

namespace tierpilot::agent {
namespace {

using ::testing::HasSubstr;

TEST(JobLine, SaysHowFarTheJobIs) {
  const auto message = parse_job_line(
      R"({"v":1,"type":"progress","iteration":3,"iterations":9,"samples":64,"loss":0.5,)"
      R"("measures":{"accuracy":0.75,"none":null}})");
  ASSERT_TRUE(message) << message.error().message;
  const auto* progress = std::get_if<JobProgress>(&*message);
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->iteration, 3u);
  EXPECT_EQ(progress->iterations, 9u);
  EXPECT_EQ(progress->samples, 64u);
  EXPECT_EQ(progress->loss, 0.5);
  ASSERT_EQ(progress->measures.size(), 1u);
  EXPECT_EQ(progress->measures[0].first, "accuracy");
}

TEST(JobLine, NamesACheckpoint) {
  const auto message =
      parse_job_line(R"({"v":1,"type":"checkpoint","path":"a/b","iteration":9,"saving_ms":12})");
  ASSERT_TRUE(message) << message.error().message;
  const auto* checkpoint = std::get_if<JobCheckpoint>(&*message);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->path, "a/b");
  EXPECT_EQ(checkpoint->iteration, 9u);
  EXPECT_EQ(checkpoint->saving_ms, 12u);
}

TEST(JobLine, WhatIsWrongIsNamed) {
  const std::pair<std::string, std::string> lines[] = {
      {"", "no JSON"},
      {"[]", "object"},
      {std::string(60'000, '['), "no JSON"},
      {"\xff\xfe", "no JSON"},
      {R"({"v":2,"type":"progress"})", "version"},
      {R"({"v":1,"type":"check"})", "type"},
      {R"({"v":1,"type":"checkpoint","iteration":1})", "path"},
      {R"({"v":1,"type":"checkpoint","path":1,"iteration":1})", "path"},
      {R"({"v":1,"type":"checkpoint","path":"a"})", "iteration"},
      {R"({"v":1,"type":"checkpoint","path":"a","iteration":-1})", "iteration"},
      {R"({"v":1,"type":7})", "no JSON"},
      {R"({"v":1,"type":"progress","loss":0.5})", "iteration"},
      {R"({"v":1,"type":"progress","iteration":-1})", "iteration"},
      {R"({"v":1,"type":"progress","iteration":1e300})", "iteration"},
      {R"({"v":1,"type":"progress","iteration":1,"loss":"low"})", "loss"},
      {R"({"v":1,"type":"progress","iteration":1,"measures":[1]})", "measures"},
      {R"({"v":1,"type":"progress","iteration":1,"measures":{"":1}})", "name"}};
  for (const auto& [line, word] : lines) {
    const auto progress = parse_job_line(line);
    ASSERT_FALSE(progress) << line.substr(0, 80);
    EXPECT_THAT(progress.error().message, HasSubstr(word)) << line.substr(0, 80);
  }
}

}  // namespace
}  // namespace tierpilot::agent
