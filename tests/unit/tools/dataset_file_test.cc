#include "tools/tierload/dataset_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tierpilot::tierload {
namespace {

class DatasetFileTest : public testing::Test {
 protected:
  DatasetFileTest() {
    char name[] = "/tmp/tierload-test-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~DatasetFileTest() override {
    unsetenv("TIERPILOT_DATASET_WEB_LOGS_V2");
    std::filesystem::remove_all(folder_);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  std::filesystem::path folder_;
};

TEST_F(DatasetFileTest, OpensWhatTheEnvironmentNames) {
  const auto path = write("data", "abcdef");
  setenv("TIERPILOT_DATASET_WEB_LOGS_V2", path.c_str(), 1);
  const auto variables = dataset_variables();
  EXPECT_NE(std::find(variables.begin(), variables.end(), "TIERPILOT_DATASET_WEB_LOGS_V2"),
            variables.end());
  auto file = DatasetFile::open("TIERPILOT_DATASET_WEB_LOGS_V2", false);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(std::string(reinterpret_cast<char*>(file->data()), file->bytes()), "abcdef");
}

TEST_F(DatasetFileTest, WritesReachTheFile) {
  const auto path = write("data", "abcdef");
  {
    auto file = DatasetFile::open_path(path, true);
    ASSERT_TRUE(file);
    file->data()[0] = std::byte{'X'};
  }
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "Xbcdef");
}

TEST_F(DatasetFileTest, AnEmptyFileIsAnEmptyDataset) {
  auto file = DatasetFile::open_path(write("empty", ""), false);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), 0u);
}

TEST_F(DatasetFileTest, SaysWhichVariableIsMissing) {
  const auto file = DatasetFile::open("TIERPILOT_DATASET_WEB_LOGS_V2", false);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_NE(file.error().message.find("TIERPILOT_DATASET_WEB_LOGS_V2"), std::string::npos);
}

TEST_F(DatasetFileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(DatasetFile::open_path(folder_ / "absent", false).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(DatasetFile::open_path(folder_, false).error().code, ErrorCode::kInvalid);
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(DatasetFile::open_path(pipe, false));  // and does not wait for a writer
}

}  // namespace
}  // namespace tierpilot::tierload
