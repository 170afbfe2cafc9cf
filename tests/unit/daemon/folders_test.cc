// Folders of the daemon's own, also where others may write.
#include "daemon/agent/node/folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kStranger = 71'500;

// A directory as /var/tmp is.
class OwnFolder : public testing::Test {
 protected:
  OwnFolder() { ::chmod(scratch_.path().c_str(), 01777); }
  static mode_t mode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  void expect_denied(const std::string& words) const {
    const auto made = own_folder(folder_, 0711);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kDenied);
    EXPECT_THAT(made.error().message, HasSubstr(folder_.native()));
    EXPECT_THAT(made.error().message, HasSubstr(words));
  }

  ScratchDirectory scratch_;
  const fs::path folder_ = fs::path(scratch_.path()) / "tierpilot-n1";
};

TEST_F(OwnFolder, IsMadeAndIsTakenAgainWithTheModeOfToday) {
  for (const mode_t mode : {0711, 0700}) {
    const auto made = own_folder(folder_, mode);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(mode_of(folder_), mode);
  }
}

TEST_F(OwnFolder, IsNoLinkToAnother) {
  const auto elsewhere = fs::path(scratch_.path()) / "elsewhere";
  fs::create_directory(elsewhere);
  ::chmod(elsewhere.c_str(), 0750);
  fs::create_directory_symlink(elsewhere, folder_);
  expect_denied("link");
  EXPECT_EQ(mode_of(elsewhere), 0750u);
}

TEST_F(OwnFolder, IsNotMadeBehindALinkToNothing) {
  const auto elsewhere = fs::path(scratch_.path()) / "elsewhere";
  fs::create_symlink(elsewhere, folder_);
  expect_denied("link");
  EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(OwnFolder, IsNoFile) {
  std::ofstream(folder_) << "something";
  expect_denied("file");
}

TEST_F(OwnFolder, IsNobodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  fs::create_directory(folder_);
  ::chmod(folder_.c_str(), 0755);
  ASSERT_EQ(::chown(folder_.c_str(), kStranger, kStranger), 0);
  expect_denied("belongs to user 71500");
  EXPECT_EQ(mode_of(folder_), 0755u);
}

TEST_F(OwnFolder, IsInNoDirectoryOfSomebodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives folders away";
  ASSERT_EQ(::chown(scratch_.path().c_str(), kStranger, kStranger), 0);
  expect_denied("chown");
  EXPECT_FALSE(fs::exists(folder_));
}

}  // namespace
}  // namespace tierpilot::agent
