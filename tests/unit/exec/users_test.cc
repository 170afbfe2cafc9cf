// Tasks with users of their own: what they cannot do, and that nothing of them stays.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "base/clock.h"
#include "daemon/exec/process_tree.h"
#include "daemon/exec/users/belongings.h"
#include "daemon/exec/users/clear_user.h"
#include "daemon/exec/users/task_user.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Far from where accounts and containers have theirs.
constexpr uid_t kFirst = 71'000;
// Of tasks that were there before this process.
constexpr uid_t kEarlier = kFirst + 99;
// Whom no task here may be.
constexpr uid_t kStranger = kFirst + 500;

struct stat status_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}

// One executor for all: whoever starts one with other users keeps no privileges to start another.
class UsersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::geteuid() != 0 || !missing_user_privileges().empty()) return;
    folder_ = std::make_unique<TempDirectory>();
    ::chmod(folder_->path().c_str(), 0711);
    leave_something();
    leave_folders();
    forge_something();
    auto started = Executor::start({.task_root = folder_->path(),
                                    .folder_roots = {folder_->path("roots")},
                                    .other_users = true,
                                    .first_reserved = kFirst,
                                    .last_reserved = kEarlier});
    ASSERT_TRUE(started) << started.error().message;
    executor_ = std::move(*started);
    const int64_t now_ns = system_clock().boot_ns();
    ASSERT_TRUE(executor_->extend_lease(now_ns + 600'000'000'000, now_ns));
    listener_ = std::make_unique<Listener>(*executor_);
  }
  static void TearDownTestSuite() {
    listener_.reset();
    executor_.reset();
    folder_.reset();
  }
  void SetUp() override {
    if (!folder_) GTEST_SKIP() << "other users need root, who may become them";
  }

  // As a node leaves it when everything is killed at once.
  static void leave_something() {
    const fs::path left = folder_->path("9-9");
    fs::create_directories(left / kWorkFolder / "deep");
    std::ofstream(left / ".user") << kEarlier << ' ' << kEarlier << " 1\n";
    for (const auto* name : {"work/deep", "work"})
      ASSERT_EQ(::chown((left / name).c_str(), kEarlier, kEarlier), 0);
    ::chmod((left / "work").c_str(), 0);
    earlier_ = ::fork();
    if (earlier_ != 0) {
      ASSERT_TRUE(wait_until([] { return has_processes(kEarlier); }));
      return;
    }
    ::setsid();
    if (!become_user({.uid = kEarlier, .gid = kEarlier})) ::_exit(1);
    for (;;) ::pause();
  }

  // Beside what it left: a folder that no task can have had, and one that is no attempt's.
  static void leave_folders() {
    const fs::path roots = folder_->path("roots");
    for (const auto& [name, uid] :
         {std::pair("9-9", kEarlier), std::pair("8-1", uid_t{1}), std::pair("notes", kEarlier)}) {
      fs::create_directories(roots / name / "deep");
      std::ofstream(roots / name / "deep" / "file") << "left";
      for (const auto* part : {"deep/file", "deep", ""})
        ASSERT_EQ(::chown((roots / name / part).c_str(), uid, uid), 0);
    }
    ::chmod((roots / "9-9" / "deep").c_str(), 0);
  }

  // As tasks may that run as the daemon: somebody else's number, and a folder that is a link.
  static void forge_something() {
    const auto strangers = folder_->path("strangers-folder");
    fs::create_directory(strangers);
    ASSERT_EQ(::chown(strangers.c_str(), kStranger, kStranger), 0);
    std::ofstream(stranger_) << "mine";
    ASSERT_EQ(::chown(stranger_.c_str(), kStranger, kStranger), 0);
    const fs::path forged = folder_->path("8-8"), elsewhere = folder_->path("elsewhere");
    for (const auto& folder : {forged, elsewhere}) {
      fs::create_directories(folder / kWorkFolder);
      std::ofstream(folder / ".user") << kStranger << ' ' << kStranger << " 1\n";
    }
    ASSERT_EQ(::chown((elsewhere / kWorkFolder).c_str(), kStranger, kStranger), 0);
    ASSERT_EQ(::chown(elsewhere.c_str(), kStranger, kStranger), 0);
    fs::create_directory_symlink(elsewhere, folder_->path("7-7"));
  }

  // As the agent prepares it.
  TaskLaunch task(uint64_t id, const std::string& script) {
    const fs::path directory = folder_->path(fmt::format("{}-1", id));
    fs::create_directories(directory / kWorkFolder);
    ::chmod(directory.c_str(), 0711);
    ::chmod((directory / kWorkFolder).c_str(), 0700);
    for (const char* log : kLogNames) {
      std::ofstream(directory / log) << "";
      ::chmod((directory / log).c_str(), 0600);
    }
    auto task = shell_task(id, script, directory.native());
    task.log_directory = directory.native();
    task.working_directory = (directory / kWorkFolder).native();
    const auto uid = static_cast<uid_t>(kFirst + id);
    task.user = TaskUser{.uid = uid, .gid = uid, .reserved = true};
    return task;
  }
  void launch(const TaskLaunch& task) {
    const auto launched = executor_->launch(task);
    ASSERT_TRUE(launched) << launched.error().message;
  }
  ProcessExit run(const TaskLaunch& task) {
    launch(task);
    return listener_->wait_exit(task.task_id);
  }
  static std::string out(const TaskLaunch& task) {
    return read_text(task.log_directory + "/stdout.log");
  }

  static inline std::unique_ptr<TempDirectory> folder_;
  static inline std::unique_ptr<Executor> executor_;
  static inline std::unique_ptr<Listener> listener_;
  static inline pid_t earlier_ = 0;
  static inline const std::string stranger_ =
      fmt::format("/dev/shm/tierpilot-stranger-{}", ::getpid());
};

TEST_F(UsersTest, WhatAnEarlierDaemonsTasksLeftIsTakenBack) {
  const fs::path left = folder_->path("9-9");
  EXPECT_EQ(status_of(left / kWorkFolder).st_uid, ::geteuid());
  EXPECT_EQ(status_of(left / kWorkFolder / "deep").st_uid, ::geteuid());
  EXPECT_FALSE(fs::exists(left / ".user"));
  int ended = 0;
  EXPECT_EQ(::waitpid(earlier_, &ended, WNOHANG), -1) << "clearing has waited for it";
  EXPECT_FALSE(has_processes(kEarlier));
}

TEST_F(UsersTest, FoldersThatAnEarlierDaemonGaveAreGone) {
  const fs::path roots = folder_->path("roots");
  EXPECT_FALSE(fs::exists(roots / "9-9"));
  EXPECT_TRUE(fs::exists(roots / "8-1" / "deep" / "file")) << "no task runs as user 1";
  EXPECT_TRUE(fs::exists(roots / "notes" / "deep" / "file"));
}

TEST_F(UsersTest, AGivenFolderIsItsUsersAndComesBackWithWhatIsInIt) {
  const fs::path given = folder_->path("given-folder");
  fs::create_directory(given);
  ::chmod(given.c_str(), 0700);
  auto swaps = task(30, fmt::format("cd {}; stat -c '%u %a' .; mkdir -p a/b; echo x > a/b/c; "
                                    "chmod 0 a/b a",
                                    given.native()));
  swaps.given_folders = {given};
  EXPECT_EQ(run(swaps).exit_code, 0);
  EXPECT_EQ(out(swaps), fmt::format("{} 700\n", kFirst + 30));
  EXPECT_THAT(listener_->wait_cleared(30), IsEmpty());
  for (const auto& entry : fs::recursive_directory_iterator(given))
    EXPECT_EQ(status_of(entry.path()).st_uid, ::geteuid()) << entry.path();
  EXPECT_EQ(status_of(given).st_uid, ::geteuid());
  EXPECT_EQ(fs::remove_all(given), 4u);
}

TEST_F(UsersTest, AFolderOfSomebodyElsesIsNotGiven) {
  const fs::path given = folder_->path("strangers-folder");
  auto swaps = task(31, "true");
  swaps.given_folders = {given};
  const auto end = run(swaps);
  EXPECT_EQ(end.how, TaskEnd::kCouldNotStart);
  EXPECT_THAT(end.reason, HasSubstr("strangers-folder"));
  EXPECT_EQ(status_of(given).st_uid, kStranger);
}

TEST_F(UsersTest, AFolderOfSomebodyElsesIsNotTakenBack) {
  const fs::path given = folder_->path("strangers-folder");
  ASSERT_EQ(status_of(given).st_uid, kStranger);
  EXPECT_TRUE(take_over_tree(given, kFirst, {.all_folders = true}));
  EXPECT_EQ(status_of(given).st_uid, kStranger);
}

TEST_F(UsersTest, WhatIsForgedClearsNobodyElsesFilesAway) {
  EXPECT_TRUE(fs::exists(stranger_));
  EXPECT_EQ(status_of(fs::path(folder_->path("elsewhere")) / kWorkFolder).st_uid, kStranger);
  fs::remove(stranger_);
}

TEST_F(UsersTest, RunsAsItsUserWithoutGroupsAndCapabilities) {
  const auto launched = task(1,
                             "id -u; id -G; grep -E '^Cap(Prm|Eff|Inh|Amb|Bnd)' "
                             "/proc/self/status | cut -f2 | sort -u; pwd; "
                             "echo to the log > /dev/stderr");
  EXPECT_EQ(run(launched).exit_code, 0);
  EXPECT_EQ(out(launched), fmt::format("{0}\n{0}\n0000000000000000\n{1}\n", kFirst + 1,
                                       launched.working_directory));
  EXPECT_EQ(read_text(launched.log_directory + "/stderr.log"), "to the log\n");
}

TEST_F(UsersTest, ReachesNothingOfTheDaemonOrOfOthers) {
  const auto victim = task(2, "echo secret > mine; chmod 644 mine; exec sleep 1000");
  launch(victim);
  listener_->wait_started(2);
  const std::string key = folder_->path("node.key");
  std::ofstream(key) << "private";
  ::chmod(key.c_str(), 0600);
  const auto hostile =
      task(3, fmt::format("exec 2>/dev/null\n"
                          "try() {{ \"$@\" >/dev/null && echo \"could: $*\"; }}\n"
                          "warden=$(cut -d' ' -f4 /proc/$PPID/stat)\n"
                          "try cat {0}\ntry ls {1}\ntry ls {1}/.exits\ntry touch {1}/.exits/3-1\n"
                          "try cat {2}/{4}/mine\ntry cat {2}/stdout.log\ntry touch {2}/{4}/x\n"
                          "try rm -f {2}/stdout.log\ntry mv {2} {2}.x\n"
                          "try kill -STOP $PPID\ntry kill -9 $PPID\ntry kill -STOP $warden\n"
                          "try kill -9 $warden\ntry kill -9 {3}\ntry cat /proc/{3}/environ\n"
                          "try ls /proc/{3}/fd\ntry ls /proc/$PPID/fd\ntry cat /proc/{3}/mem\n"
                          "try rm -f ../stdout.log\ntry touch ../x\necho done",
                          key, folder_->path(), victim.log_directory,
                          listener_->wait_started(2).pid, "work"));
  EXPECT_EQ(run(hostile).exit_code, 0);
  EXPECT_EQ(out(hostile), "done\n");
  EXPECT_TRUE(executor_->cancel(2, 1, 0));
  EXPECT_EQ(listener_->wait_exit(2).how, TaskEnd::kCancelled);
}

TEST_F(UsersTest, EverythingIsTakenBackWhateverTheTaskMadeOfIt) {
  const std::string given = folder_->path("given"), others = folder_->path("others");
  for (const auto& path : {given, others}) {
    std::ofstream(path) << "old";
    ::chmod(path.c_str(), 0600);
  }
  auto messy =
      task(4, fmt::format("printf new > {}; chmod 0 {}; chmod 0 ../stdout.log\n"
                          "mkdir -p a/b; echo x > a/b/c; ln -s {} a/link; ln a/b/c a/hard\n"
                          "chmod 0 a/b a\n"
                          "mkdir d; cd d; for i in $(seq 100); do mkdir n; cd n; done; echo > end",
                          given, given, others));
  messy.given = {given};
  EXPECT_EQ(run(messy).exit_code, 0);
  EXPECT_EQ(status_of(given).st_uid, ::geteuid());
  EXPECT_EQ(read_text(given), "new");
  EXPECT_THAT(listener_->wait_cleared(4), IsEmpty());
  EXPECT_EQ(read_text(others), "old");
  for (const auto& entry : fs::recursive_directory_iterator(messy.log_directory)) {
    EXPECT_EQ(status_of(entry.path()).st_uid, ::geteuid()) << entry.path();
    // All that removing needs.
    if (entry.is_directory()) {
      EXPECT_EQ(status_of(entry.path()).st_mode & 0700, 0700u) << entry.path();
    }
  }
  EXPECT_GT(fs::remove_all(messy.log_directory), 100u);
}

// Nobody is to take it for what it was: whether it has its second name still is a matter of time.
TEST_F(UsersTest, AGivenFileThatHadASecondNameIsNotTakenBackEver) {
  const auto room = fmt::format("/dev/shm/tierpilot-users-{}", ::getpid());
  const std::string given = room + "/given", link = room + "-link";
  fs::create_directory(room);
  ::chmod(room.c_str(), 0711);
  std::ofstream(given) << "old";
  ::chmod(given.c_str(), 0600);
  auto cheat = task(12, fmt::format("ln {} {}", given, link));
  cheat.given = {given};
  EXPECT_EQ(run(cheat).exit_code, 0);
  EXPECT_THAT(listener_->wait_cleared(12), IsEmpty());
  EXPECT_FALSE(fs::exists(link));
  EXPECT_EQ(status_of(given).st_uid, kFirst + 12);
  fs::remove_all(room);
}

TEST_F(UsersTest, NothingOfItStaysAnywhere) {
  const auto mark = fmt::format("tierpilot-users-{}", ::getpid());
  auto hidden = task(5, fmt::format("mkdir -p /tmp/{0}/x; chmod 0 /tmp/{0}; echo > /dev/shm/{0}\n"
                                    "ipcmk -M 4096 >/dev/null; {1}\nexit 0",
                                    mark, detached_sleeper("pid")));
  EXPECT_EQ(run(hidden).exit_code, 0);
  EXPECT_THAT(listener_->wait_cleared(5), IsEmpty());
  EXPECT_FALSE(fs::exists("/tmp/" + mark));
  EXPECT_FALSE(fs::exists("/dev/shm/" + mark));
  EXPECT_FALSE(has_processes(kFirst + 5));
  EXPECT_THAT(read_text("/proc/sysvipc/shm"), Not(HasSubstr(fmt::format(" {} ", kFirst + 5))));
}

TEST_F(UsersTest, AUserThatHasProcessesAlreadyIsNotUsedAndLeftAlone) {
  const auto first = task(6, "exec sleep 1000");
  launch(first);
  listener_->wait_started(6);
  auto second = task(7, "true");
  second.user = first.user;
  const auto refused = run(second);
  EXPECT_EQ(refused.how, TaskEnd::kCouldNotStart);
  EXPECT_TRUE(refused.node_fault);
  EXPECT_THAT(refused.reason, HasSubstr("has processes"));
  EXPECT_THAT(listener_->wait_cleared(7), HasSubstr("has processes"));
  EXPECT_EQ(listener_->exits_of(6), 0u);
  EXPECT_TRUE(executor_->cancel(6, 1, 0));
  EXPECT_EQ(listener_->wait_exit(6).how, TaskEnd::kCancelled);
}

TEST_F(UsersTest, ItsFilesAreOpenedAsItMayOpenThem) {
  const std::string key = folder_->path("key");
  std::ofstream(key) << "private";
  ::chmod(key.c_str(), 0600);
  const auto saving = task(8, fmt::format("umask 077; printf state > state; ln -s {} out; "
                                          "mkfifo pipe; echo ready; exec sleep 1000",
                                          key));
  launch(saving);
  wait_for_line(saving.log_directory + "/stdout.log");
  std::vector<Result<UniqueFd>> opened;
  for (const char* path : {"state", "out", "pipe", "absent"})
    executor_->open_file(8, 1, path,
                         [&](Result<UniqueFd> file) { opened.push_back(std::move(file)); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (opened.size() < 4 && std::chrono::steady_clock::now() < end) listener_->listen(100);
  ASSERT_EQ(opened.size(), 4u);
  size_t good = 0;
  for (auto& file : opened) {
    if (!file) continue;
    ++good;
    char text[16] = {};
    EXPECT_EQ(::read(file->get(), text, sizeof text), 5);
    EXPECT_STREQ(text, "state");
  }
  EXPECT_EQ(good, 1u);
  EXPECT_TRUE(executor_->cancel(8, 1, 0));
  listener_->wait_exit(8);
}

TEST_F(UsersTest, StandsStillAndGoesOn) {
  const auto busy = task(10, "(while :; do :; done) & while :; do :; done");
  launch(busy);
  const auto supervisor = parent_of(listener_->wait_started(10).pid);
  const auto used_in_100_ms = [&] {
    const auto before = descendants(supervisor);
    int64_t used = 0;
    for (const pid_t process : before) used -= cpu_time_ns(process).value_or(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const pid_t process : before) used += cpu_time_ns(process).value_or(0);
    return used;
  };
  EXPECT_TRUE(wait_until([&] { return used_in_100_ms() > 0; }));
  executor_->stand_still(10, 1, true);
  EXPECT_TRUE(wait_until([&] { return used_in_100_ms() == 0; }));
  executor_->stand_still(10, 1, false);
  EXPECT_TRUE(wait_until([&] { return used_in_100_ms() > 0; }));
  EXPECT_TRUE(executor_->cancel(10, 1, 0));
  listener_->wait_exit(10);
}

TEST_F(UsersTest, AKilledSupervisorsTaskIsEndedAndCleared) {
  const auto orphan = task(11, detached_sleeper("pid") + "; echo ready; exec sleep 1000");
  launch(orphan);
  wait_for_line(orphan.log_directory + "/stdout.log");
  ::kill(parent_of(listener_->wait_started(11).pid), SIGKILL);
  EXPECT_EQ(listener_->wait_exit(11).how, TaskEnd::kLost);
  EXPECT_THAT(listener_->wait_cleared(11), IsEmpty());
  EXPECT_FALSE(has_processes(kFirst + 11));
  EXPECT_EQ(status_of(orphan.working_directory).st_uid, ::geteuid());
}

TEST_F(UsersTest, TheDaemonItselfKeepsNoneOfThePrivileges) {
  EXPECT_THAT(missing_user_privileges(), HasSubstr("CAP_SETUID CAP_SETGID CAP_CHOWN CAP_KILL"));
}

// The last: it ends the executor.
TEST_F(UsersTest, WithoutWardenNothingOfATaskLives) {
  const auto orphan = task(20, detached_sleeper("pid") + "; echo ready; exec sleep 1000");
  launch(orphan);
  wait_for_line(orphan.log_directory + "/stdout.log");
  ::kill(executor_->warden_pid(), SIGKILL);
  EXPECT_EQ(listener_->wait_exit(20).how, TaskEnd::kLost);
  EXPECT_TRUE(wait_until([] { return !has_processes(kFirst + 20); }));
}

}  // namespace
}  // namespace tierpilot
