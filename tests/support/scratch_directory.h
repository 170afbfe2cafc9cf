// A directory that is gone, with all in it, when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace tierpilot {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    path_ = testing::TempDir() + "/tierpilot-test-XXXXXX";
    if (!mkdtemp(path_.data())) ADD_FAILURE() << path_ << " cannot be made";
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

}  // namespace tierpilot
