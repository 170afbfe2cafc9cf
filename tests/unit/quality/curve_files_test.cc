#include "policies/sim/quality/curve_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace tierpilot::sim {
namespace {

class CurveFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "curves-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::filesystem::path folder_;
};

TEST_F(CurveFiles, APlainTableIsOneRunCalledAsItsFile) {
  const auto file = read_curves(write("svm.csv", "iteration,loss,seconds\n1,5,0.1\n2,4,0.2\n"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->curves.size(), 1U);
  EXPECT_EQ(file->curves[0].run, "svm");
  EXPECT_EQ(file->curves[0].points[1].loss, 4);
  EXPECT_EQ(file->curves[0].seconds, (std::vector<double>{0.1, 0.2}));
}

TEST_F(CurveFiles, RunsAreToldApartAndFamiliesComeFromTheTableBeside) {
  write("a_runs.csv", "run,workload\n1,ogbg\n2,criteo\n");
  const auto file = read_curves(
      write("a_curves.csv",
            "run,step,seconds,train_loss,valid_loss\n1,1,2,0.5,0.6\n2,1,2,9,9\n1,5,9,nan,1\n"));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->curves.size(), 2U);
  EXPECT_EQ(file->curves[0].family, "ogbg");
  EXPECT_EQ(file->curves[1].family, "criteo");
  EXPECT_TRUE(std::isnan(file->curves[0].points[1].loss));
}

TEST_F(CurveFiles, SchedulesOfOneSizeAreRunsOfOneFamily) {
  const auto file = read_curves(write(
      "llm.csv",
      "params_m,schedule,step,lr,loss\n25,cosine,1,0.1,5\n25,wsd,1,0.1,6\n100,wsd,1,0.1,4\n"));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->curves.size(), 3U);
  EXPECT_EQ(file->curves[0].family, file->curves[1].family);
  EXPECT_NE(file->curves[1].family, file->curves[2].family);
}

TEST_F(CurveFiles, AnotherMeasureMayBeNamed) {
  const auto file = read_curves(write("m.csv", "step,loss,accuracy\n1,5,0.5\n"), "accuracy");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->curves[0].points[0].loss, 0.5);
}

TEST_F(CurveFiles, WhatIsMissingIsNamed) {
  const auto file = read_curves(write("x.csv", "time,value\n1,2\n"));
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("iteration"), std::string::npos);
  EXPECT_NE(file.error().message.find("x.csv"), std::string::npos);
  EXPECT_FALSE(read_curves(folder_ / "none.csv"));
  EXPECT_FALSE(read_curves(write("empty.csv", "")));
  EXPECT_FALSE(read_curve_files(folder_ / "nowhere"));
}

TEST_F(CurveFiles, RowsThatAreNoReportAreCounted) {
  const auto file = read_curves(write("x.csv", "step,loss\n1,2\nfour,3\n5,\n6,inf\n"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->skipped, 2U);
  EXPECT_NE(file->first_skipped.find("x.csv:3"), std::string::npos);
  EXPECT_EQ(file->curves[0].points.size(), 2U);
}

TEST_F(CurveFiles, AFolderHasAllItsTablesOfCurves) {
  write("a.csv", "step,loss\n1,2\n");
  write("b.csv", "step,loss\n1,2\n");
  write("other.csv", "name,value\nx,2\n");
  const auto file = read_curve_files(folder_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->curves.size(), 2U);
}

}  // namespace
}  // namespace tierpilot::sim
