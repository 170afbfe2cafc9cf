// What an executor needs to start, and what its predecessor left.
#include "daemon/exec/executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

TEST(ExecutorStart, NamesATaskRootThatCannotBeMade) {
  const auto executor = Executor::start({.task_root = "/proc/no/tasks"});
  ASSERT_FALSE(executor);
  EXPECT_NE(executor.error().message.find("task root '/proc/no/tasks'"), std::string::npos);
}

TEST(ExecutorStart, RemovesTheFoldersOfAttemptsThatAKilledDaemonLeft) {
  namespace fs = std::filesystem;
  TempDirectory tasks, elsewhere, roots;
  for (const auto* path : {"7-1/deep", "12-3", "notes"})
    fs::create_directories(fs::path(roots.path()) / path);
  std::ofstream(roots.path("7-1/deep/file")) << "left";
  fs::permissions(roots.path("7-1/deep"), fs::perms::none);
  std::ofstream(elsewhere.path("file")) << "mine";
  fs::create_directory_symlink(elsewhere.path(), roots.path("8-1"));
  const auto executor =
      Executor::start({.task_root = tasks.path(), .folder_roots = {roots.path()}});
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_FALSE(fs::exists(roots.path("7-1")));
  EXPECT_FALSE(fs::exists(roots.path("12-3")));
  EXPECT_TRUE(fs::exists(roots.path("notes"))) << "no attempt's";
  EXPECT_TRUE(fs::exists(elsewhere.path("file"))) << "a link is no folder";
}

TEST(ExecutorStart, RemovesNothingBehindALinkAndNothingInAnothersFolder) {
  namespace fs = std::filesystem;
  TempDirectory tasks, elsewhere, slow;
  fs::create_directories(elsewhere.path("7-1"));
  fs::create_directory_symlink(elsewhere.path(), slow.path("link"));
  fs::create_directories(slow.path("others/7-1"));
  const bool is_root = ::geteuid() == 0;  // who alone can make it another's
  ExecutorOptions options{.task_root = tasks.path(), .folder_roots = {slow.path("link")}};
  if (is_root) {
    ASSERT_EQ(::chown(slow.path("others").c_str(), 1234, 1234), 0);
    options.folder_roots.push_back(slow.path("others"));
  }
  const auto executor = Executor::start(options);
  EXPECT_TRUE(fs::exists(elsewhere.path("7-1")));
  EXPECT_TRUE(fs::exists(slow.path("others/7-1")));
}

TEST(ExecutorStart, TwoDoNotShareAFolderOfTasksThoughTheirTaskRootsDiffer) {
  namespace fs = std::filesystem;
  TempDirectory tasks, other_tasks, slow;
  auto first = Executor::start({.task_root = tasks.path(), .folder_roots = {slow.path()}});
  ASSERT_TRUE(first) << first.error().message;
  fs::create_directories(slow.path("7-1"));
  const ExecutorOptions same{.task_root = other_tasks.path(), .folder_roots = {slow.path()}};
  auto impatient = same;
  impatient.start_patience_ms = 20;
  const auto second = Executor::start(impatient);
  EXPECT_TRUE(fs::exists(slow.path("7-1"))) << "the first one's";
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  for (const auto& part : {slow.path(), tasks.path(), fmt::format("process {}", ::getpid())})
    EXPECT_NE(second.error().message.find(part), std::string::npos) << second.error().message;
  first->reset();
  const auto third = Executor::start(same);
  EXPECT_TRUE(third) << third.error().message;
  EXPECT_FALSE(fs::exists(slow.path("7-1")));
}

TEST(ExecutorStart, RemovesWhatItsPredecessorWasRemoving) {
  namespace fs = std::filesystem;
  TempDirectory tasks, slow;
  fs::create_directories(slow.path(".removed-7-1/deep"));
  fs::create_directories(slow.path(".removed-.removed-7-1/deep"));
  fs::create_directories(slow.path(".removed-notes"));
  const auto executor = Executor::start({.task_root = tasks.path(), .folder_roots = {slow.path()}});
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_FALSE(fs::exists(slow.path(".removed-7-1")));
  EXPECT_FALSE(fs::exists(slow.path(".removed-.removed-7-1")));
  EXPECT_TRUE(fs::exists(slow.path(".removed-notes")));
}

TEST(ExecutorStart, SaysWhatLimitsAreNotAvailable) {
  TempDirectory empty;
  auto executor = Executor::start({.sysroot = Sysroot(empty.path())});
  ASSERT_TRUE(executor) << executor.error().message;
  EXPECT_FALSE((*executor)->limits().memory.on);
  EXPECT_FALSE((*executor)->limits().memory.why_not.empty());
  EXPECT_FALSE((*executor)->limits().kill.why_not.empty());
}

}  // namespace
}  // namespace tierpilot
