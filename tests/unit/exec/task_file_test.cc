// Files that a task names are opened only where nothing that the task has mounted is asked.
#include "daemon/exec/users/task_file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

enum Seen { kRefused, kOtherwiseRefused, kOpened, kNoMounts };

// In a process with mounts of its own, something is mounted at `folder`/mounted.
Seen open_within_a_mount(const std::filesystem::path& folder) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return kNoMounts;
  const auto at = folder / "mounted";
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", at.c_str(), "tmpfs", 0, nullptr) != 0)
    return kNoMounts;
  std::ofstream(at / "state") << "here";
  const auto file = open_task_file(folder, "mounted/state");
  if (file) return kOpened;
  const bool told = file.error().message.find("not on the file system") != std::string::npos;
  return told ? kRefused : kOtherwiseRefused;
}

TEST(TaskFile, IsOpenedInTheFolderAndInFoldersOfIt) {
  const TempDirectory folder;
  std::filesystem::create_directory(folder.path("deep"));
  std::ofstream(folder.path("deep/state")) << "here";
  EXPECT_TRUE(open_task_file(folder.path(), "deep/state"));
  EXPECT_TRUE(open_task_file(folder.path(), folder.path("deep/state")));
  EXPECT_FALSE(open_task_file(folder.path(), "deep"));
  EXPECT_FALSE(open_task_file(folder.path(), "none"));
}

TEST(TaskFile, IsRefusedWhereTheTaskHasMountedSomething) {
  const TempDirectory folder;
  std::filesystem::create_directory(folder.path("mounted"));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(open_within_a_mount(folder.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMounts) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), kRefused);
}

}  // namespace
}  // namespace tierpilot
