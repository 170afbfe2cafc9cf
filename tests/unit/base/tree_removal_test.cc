// What programs leave is removed, however closed it is.
#include "base/files/tree_removal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/files/own_folder.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kNobody = 65534;

bool always() {
  return true;
}

// As a module cache is left, and as whoever hides something leaves it.
void make_closed_tree(const fs::path& top) {
  fs::create_directories(top / "cache/module/deep");
  fs::create_directories(top / "hidden/more");
  for (const char* file : {"cache/module/a", "cache/module/deep/b", "hidden/more/c"})
    std::ofstream(top / file) << "left";
  ::chmod((top / "cache/module/deep").c_str(), 0555);
  ::chmod((top / "cache/module").c_str(), 0555);
  ::chmod((top / "hidden").c_str(), 0);
  ::chmod(top.c_str(), 0555);
}

// In a child without the rights of root; gives its exit status.
int as_nobody(const std::function<int()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(99);
    ::_exit(act());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class TreeRemovalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tierpilot-tree-XXXXXX";
    ASSERT_TRUE(::mkdtemp(name));
    scratch_ = name;
    ::chmod(name, 0777);
  }
  void TearDown() override { remove_tree(scratch_, always); }

  fs::path scratch_;
};

TEST_F(TreeRemovalTest, FoldersThatAreClosedAreOpened) {
  const auto top = scratch_ / "task";
  EXPECT_EQ(as_nobody([&] {
              make_closed_tree(top);
              return remove_tree(top, always);
            }),
            0);
  EXPECT_TRUE(fs::is_empty(scratch_));
}

// To look into them is no reason to let anybody write there, nor to take anything from others.
TEST_F(TreeRemovalTest, ToListAFolderOpensItNoFurtherThanItHasTo) {
  const auto mode_after = [&](mode_t mode) {
    const auto folder = scratch_ / std::to_string(mode);
    return as_nobody([&] {
      fs::create_directory(folder);
      ::chmod(folder.c_str(), mode);
      struct stat info {};
      return list_own_folder(AT_FDCWD, folder.c_str()) && ::stat(folder.c_str(), &info) == 0
                 ? static_cast<int>((info.st_mode & 07777) >> 3)  // an exit status has eight bits
                 : 0;
    });
  };
  EXPECT_EQ(mode_after(0550), 055);
  EXPECT_EQ(mode_after(0070), 057);
}

TEST_F(TreeRemovalTest, ThoseOfOthersStayAndTheFirstErrorIsTold) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs files of another user";
  const auto top = scratch_ / "task";
  fs::create_directories(top / "others");
  std::ofstream(top / "others/file") << "kept";
  ASSERT_EQ(::chown(top.c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(as_nobody([&] { return remove_tree(top, always); }), EACCES);
  EXPECT_TRUE(fs::exists(top / "others/file"));
}

TEST_F(TreeRemovalTest, EndsWhenItIsToAndGoesOnTheNextTime) {
  const auto top = scratch_ / "task";
  for (int i = 0; i < 100; ++i) fs::create_directories(top / std::to_string(i) / "more");
  int entries = 0;
  EXPECT_EQ(remove_tree(top, [&] { return ++entries < 50; }), 0);
  EXPECT_TRUE(fs::exists(top));
  EXPECT_EQ(remove_tree(top, always), 0);
  EXPECT_FALSE(fs::exists(top));
}

}  // namespace
}  // namespace tierpilot
