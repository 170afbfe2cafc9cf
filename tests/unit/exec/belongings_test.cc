// What a task's user has in its folders becomes the daemon's, and nothing elsewhere does.
#include "daemon/exec/users/belongings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kSubmitter = 54321;

uid_t owner_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_uid;
}

class BelongingsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs files of another user";
    fs::create_directories(work_ / "cache");
    fs::create_directories(home_);
    for (const auto& file : {work_ / "own", home_ / "kept"}) std::ofstream(file) << "text";
    fs::create_hard_link(home_ / "kept", work_ / "cache/linked");
    for (const auto& path : {work_, work_ / "cache", work_ / "own", home_, home_ / "kept"})
      ASSERT_EQ(::chown(path.c_str(), kSubmitter, kSubmitter), 0);
  }

  TempDirectory directory_;
  const fs::path work_ = directory_.path("work"), home_ = directory_.path("home");
};

TEST_F(BelongingsTest, FilesWithASecondNameElsewhereStayTheSubmitters) {
  EXPECT_TRUE(take_over_tree(work_, kSubmitter, {.all_folders = true, .linked_files = false}));
  EXPECT_EQ(owner_of(work_ / "own"), ::geteuid());
  EXPECT_EQ(owner_of(work_ / "cache"), ::geteuid());
  EXPECT_EQ(owner_of(home_ / "kept"), kSubmitter);
  fs::remove_all(work_);
  EXPECT_TRUE(fs::exists(home_ / "kept"));
}

TEST_F(BelongingsTest, OfAUserWhoIsTheTasksAloneAllIsTaken) {
  EXPECT_TRUE(take_over_tree(work_, kSubmitter, {.all_folders = true}));
  EXPECT_EQ(owner_of(work_ / "cache/linked"), ::geteuid());
}

}  // namespace
}  // namespace tierpilot
