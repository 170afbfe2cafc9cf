// Whoever waits for a file of a task is answered once, whatever becomes of the task.
#include "daemon/exec/file_requests.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

class FileRequestsTest : public testing::Test {
 protected:
  FileRequests::Opened note() {
    return [this](const Result<UniqueFd>& file) {
      errors_.push_back(file ? ErrorCode::kConflict : file.error().code);
    };
  }
  FileRequests requests_;
  std::vector<ErrorCode> errors_;
};

TEST_F(FileRequestsTest, AreAnsweredOnce) {
  const auto request = requests_.add(7, note());
  requests_.answer({.request = request, .code = ErrorCode::kDenied, .fault = "no"}, UniqueFd());
  requests_.answer({.request = request, .code = ErrorCode::kIo, .fault = "again"}, UniqueFd());
  requests_.end(7);
  EXPECT_EQ(errors_, std::vector{ErrorCode::kDenied});
}

TEST_F(FileRequestsTest, EndWithTheirTask) {
  requests_.add(7, note());
  requests_.add(8, note());
  requests_.end(7);
  EXPECT_EQ(errors_, std::vector{ErrorCode::kUnreachable});
  requests_.end(0);
  EXPECT_EQ(errors_.size(), 2U);
}

}  // namespace
}  // namespace tierpilot
