// What jobs of `quickstart quality` write down, and the curves that are recorded from it.
#include <gtest/gtest.h>

#include <fstream>

#include "policies/sim/quality/curve_files.h"
#include "tests/support/scratch_directory.h"
#include "tools/demo/quality/recorded_curves.h"

namespace tierpilot::demo {
namespace {

TrainingSeries series(const std::string& name) {
  TrainingSeries job{.name = name, .submitted_s = 1000, .points = {}};
  for (int i = 1; i <= 40; ++i)
    job.points.push_back({1001.5 + 0.25 * i, static_cast<double>(i), 3.0 / i + 1e-9 * i, 0.2 * i});
  return job;
}

TEST(QualityDemo, WhatIsRecordedIsReadAgain) {
  const ScratchDirectory folder;
  const auto curves = std::filesystem::path(folder.path()) / "new" / "curves";
  ASSERT_TRUE(write_curves(curves, {series("linear"), series("svm")}, 3));
  ASSERT_TRUE(write_curves(curves, {series("linear")}, 4));
  const auto read = sim::read_curve_files(curves);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->curves.size(), 3u);
  EXPECT_EQ(read->skipped, 0u);
  const auto wanted = series("linear");
  const auto& first = read->curves[0];
  EXPECT_EQ(first.family, "linear");
  EXPECT_EQ(first.run, "linear/seed 3");
  EXPECT_EQ(read->curves[1].run, "linear/seed 4");
  EXPECT_EQ(read->curves[2].family, "svm");
  ASSERT_EQ(first.points.size(), wanted.points.size());
  ASSERT_EQ(first.seconds.size(), wanted.points.size());
  for (size_t i = 0; i < wanted.points.size(); ++i) {
    EXPECT_EQ(first.points[i].iteration, wanted.points[i].iteration);
    EXPECT_NEAR(first.points[i].loss, wanted.points[i].loss, 1e-8);
    EXPECT_NEAR(first.seconds[i], 0.25 * static_cast<double>(i), 1e-3);
  }
}

TEST(QualityDemo, AFolderThatCannotBeIsNamed) {
  const auto written = write_curves("/proc/no/such", {series("linear")}, 1);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/proc/no/such"), std::string::npos);
}

TEST(QualityDemo, AJobThatWroteNothingIsAHeaderOnly) {
  EXPECT_EQ(curve_csv({.name = "x", .submitted_s = 0, .points = {}}, 1),
            "family,run,iteration,loss,seconds\n");
}

TEST(QualityDemo, LinesOfAnotherFormAreNoPoints) {
  const auto points =
      read_training_log("hello\n1.5 1 0.5 0.1\n1 2\n2.5 2 nan 0.2\n3.5 3 0.25 0.3 x\n");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[1].iteration, 3);
}

}  // namespace
}  // namespace tierpilot::demo
