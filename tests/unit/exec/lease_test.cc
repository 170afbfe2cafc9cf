// The promise: no task outlives the node's lease, or the daemon, whatever happens to the daemon.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/clock.h"
#include "daemon/exec/process_tree.h"
#include "tests/support/hanging_mount.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

// A process that runs an executor with one task, as the daemon would, and then only sleeps.
class FakeDaemon {
 public:
  FakeDaemon(const std::string& directory, int64_t lease_ms) : directory_(directory) {
    pid_ = ::fork();
    if (pid_ == 0) live(lease_ms);
  }
  ~FakeDaemon() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  pid_t task() const { return wait_for_pid(directory_ + "/task"); }
  pid_t detached() const { return wait_for_pid(directory_ + "/detached"); }

 private:
  [[noreturn]] void live(int64_t lease_ms) const {
    auto executor = Executor::start({.task_root = directory_});
    if (!executor) ::_exit(1);
    const int64_t now_ns = system_clock().boot_ns();
    (void)(*executor)->extend_lease(now_ns + lease_ms * 1'000'000, now_ns);
    (void)(*executor)->launch(shell_task(
        7, detached_sleeper(directory_ + "/detached") + "; echo $$ > task; exec sleep 1000",
        directory_));
    for (;;) ::pause();
  }

  std::string directory_;
  pid_t pid_;
};

TEST(Lease, ItsEndKillsTasksWhileTheDaemonIsStopped) {
  TempDirectory directory;
  FakeDaemon daemon(directory.path(), 1'500);
  const pid_t task = daemon.task(), detached = daemon.detached();
  ASSERT_EQ(::kill(daemon.pid(), SIGSTOP), 0);
  EXPECT_TRUE(wait_until_gone(task));
  EXPECT_TRUE(wait_until_gone(detached));
}

TEST(Lease, DaemonKilledKillsItsTasks) {
  TempDirectory directory;
  FakeDaemon daemon(directory.path(), 600'000);
  const pid_t task = daemon.task(), detached = daemon.detached();
  ASSERT_TRUE(process_exists(task));
  ASSERT_EQ(::kill(daemon.pid(), SIGKILL), 0);
  EXPECT_TRUE(wait_until_gone(task));
  EXPECT_TRUE(wait_until_gone(detached));
}

TEST(Lease, TheNextDaemonStartsWhenNothingOfTheLastIsLeft) {
  TempDirectory directory;
  FakeDaemon daemon(directory.path(), 600'000);
  const pid_t task = daemon.task(), detached = daemon.detached();
  const auto too_early = Executor::start({.task_root = directory.path(), .start_patience_ms = 50});
  ASSERT_FALSE(too_early);
  EXPECT_EQ(too_early.error().code, ErrorCode::kConflict);
  ASSERT_EQ(::kill(daemon.pid(), SIGKILL), 0);
  const auto next =
      Executor::start({.task_root = directory.path(), .start_patience_ms = kPatienceMs});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(process_exists(task));
  EXPECT_FALSE(process_exists(detached));
}

TEST(Lease, SignalsToTheDaemonsGroupDoNotReachTheWarden) {
  TempDirectory directory;
  const pid_t daemon = ::fork();
  if (daemon == 0) {
    ::setpgid(0, 0);
    auto executor = Executor::start({.task_root = directory.path()});
    ::signal(SIGTERM, SIG_IGN);
    const int64_t now_ns = system_clock().boot_ns();
    (void)(*executor)->extend_lease(now_ns + 600'000'000'000, now_ns);
    (void)(*executor)->launch(shell_task(7, "echo $$ > task; exec sleep 1000", directory.path()));
    for (;;) ::pause();
  }
  const pid_t task = wait_for_pid(directory.path("task"));
  ASSERT_EQ(::kill(-daemon, SIGTERM), 0);
  ASSERT_EQ(::kill(-daemon, SIGINT), 0);  // ends the daemon, which ignores SIGTERM only
  EXPECT_TRUE(wait_until_gone(task));
  ::waitpid(daemon, nullptr, 0);
}

TEST_F(ExecutorTest, NothingIsLaunchedWithoutALease) {
  start_without_lease({});
  EXPECT_EQ(executor_->launch(shell(1, "true")).error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(executor_->extend_lease(1, 1));
  EXPECT_EQ(executor_->launch(shell(1, "true")).error().code, ErrorCode::kUnavailable);
}

TEST_F(ExecutorTest, LeaseEndIsReportedAndStopsLaunches) {
  start_without_lease({});
  hold_lease(1'500);
  for (uint64_t id : {7u, 8u}) {
    const auto file = directory_.path("detached" + std::to_string(id));
    ASSERT_TRUE(
        executor_->launch(shell(id, detached_sleeper(file) + "; trap '' TERM; sleep 1000; :")));
  }
  const pid_t detached = wait_for_pid(directory_.path("detached7"));
  for (uint64_t id : {7u, 8u}) {
    const auto exit = listener_->wait_exit(id);
    EXPECT_EQ(exit.how, TaskEnd::kLeaseExpired) << exit.reason;
    EXPECT_EQ(exit.signal, SIGKILL);
    EXPECT_EQ(exit.reason, "the node's lease ended");
    EXPECT_TRUE(exit.cpu_user_ns);
  }
  EXPECT_FALSE(process_exists(detached));
  EXPECT_EQ(executor_->launch(shell(9, "true")).error().code, ErrorCode::kUnavailable);
  hold_lease();
  EXPECT_EQ(run(shell(9, "exit 5")).exit_code, 5);
}

TEST_F(ExecutorTest, AnExtendedLeaseKeepsTasks) {
  start_without_lease({});
  hold_lease(500);
  const int64_t first_deadline_ns = system_clock().boot_ns() + 500'000'000;
  hold_lease(600'000);
  ASSERT_TRUE(executor_->extend_lease(first_deadline_ns,
                                      first_deadline_ns - 1));  // an older one takes nothing back
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  while (system_clock().boot_ns() < first_deadline_ns + 300'000'000) listener_->listen(50);
  EXPECT_EQ(listener_->started.size(), 1u);
  EXPECT_TRUE(listener_->exits.empty());
}

TEST_F(ExecutorTest, ABurstOfLaunchesHoldsUpNeitherTheLeaseNorStops) {
  constexpr int64_t kLeaseMs = 2'000;
  constexpr uint64_t kLaunches = 400;
  start_without_lease({});
  hold_lease(kLeaseMs);
  for (const uint64_t id : {7, 8}) ASSERT_TRUE(executor_->launch(shell(id, "sleep 1000")));
  for (const uint64_t id : {7, 8}) listener_->wait_started(id);
  for (uint64_t i = 0; i < kLaunches; ++i) ASSERT_TRUE(executor_->launch(shell(100 + i, "exit 0")));
  ASSERT_TRUE(executor_->cancel(8, 1, 0));
  size_t ended_before_8 = 0;
  for (int i = 0; i < 60'000 && listener_->exits.size() < kLaunches + 1; ++i) {
    hold_lease(kLeaseMs);
    listener_->listen(20);
    if (listener_->exits_of(8) == 0) ended_before_8 = listener_->exits.size();
  }
  EXPECT_LT(ended_before_8, kLaunches / 2);
  EXPECT_EQ(listener_->exits_of(7), 0u) << "its node's lease was held all the time";
  for (const auto& exit : listener_->exits)
    EXPECT_EQ(exit.how, exit.task_id == 8 ? TaskEnd::kCancelled : TaskEnd::kExited) << exit.reason;
}

TEST_F(ExecutorTest, ADeadWardenTakesItsTasksAlongAndIsReported) {
  ASSERT_TRUE(executor_->launch(shell(
      7, detached_sleeper(directory_.path("detached")) + "; echo $$ > task; exec sleep 1000")));
  const pid_t task = wait_for_pid(directory_.path("task"));
  const pid_t detached = wait_for_pid(directory_.path("detached"));
  run(shell(8, "true"));
  ASSERT_EQ(::kill(executor_->warden_pid(), SIGKILL), 0);
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kLost);
  EXPECT_NE(exit.reason.find("warden died"), std::string::npos) << exit.reason;
  // At once: the report says that nothing is left.
  EXPECT_FALSE(process_exists(task));
  EXPECT_FALSE(process_exists(detached));
  EXPECT_EQ(listener_->exits_of(7), 1u);
  EXPECT_EQ(listener_->exits_of(8), 1u);
  EXPECT_FALSE(executor_->warden_alive());
  EXPECT_EQ(executor_->launch(shell(9, "true")).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(executor_->extend_lease(INT64_MAX, 1).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(executor_->poll().empty());
}

// A task's parent is its supervisor.
TEST_F(ExecutorTest, ADeadSupervisorTakesItsTaskAlongAndIsReported) {
  ASSERT_TRUE(executor_->launch(
      shell(7, detached_sleeper(directory_.path("detached")) +
                   "; echo $PPID > supervisor; echo $$ > task; exec sleep 1000")));
  ASSERT_TRUE(executor_->launch(shell(8, "sleep 1000")));
  const pid_t task = wait_for_pid(directory_.path("task"));
  const pid_t detached = wait_for_pid(directory_.path("detached"));
  ASSERT_EQ(::kill(wait_for_pid(directory_.path("supervisor")), SIGKILL), 0);
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kLost);
  EXPECT_FALSE(process_exists(task));
  EXPECT_FALSE(process_exists(detached));
  ASSERT_TRUE(executor_->cancel(8, 1, 0));
  EXPECT_EQ(listener_->wait_exit(8).how, TaskEnd::kCancelled);
}

// Killed, it stays until who traces it looks: as one that is stuck in the kernel.
TEST_F(ExecutorTest, ALostTaskIsToldInTimeAlsoWhereAProcessOfItCannotBeKilled) {
  start({.kill_patience_ms = 200});
  ASSERT_TRUE(executor_->launch(shell(7, detached_sleeper(directory_.path("detached")) +
                                             "; echo $PPID > supervisor; "
                                             "exec sleep 1000")));
  const pid_t stuck = wait_for_pid(directory_.path("detached"));
  if (::ptrace(PTRACE_SEIZE, stuck, nullptr, nullptr) != 0) GTEST_SKIP() << "may not trace";
  ASSERT_EQ(::kill(wait_for_pid(directory_.path("supervisor")), SIGKILL), 0);
  const auto end = listener_->wait_exit(7);
  EXPECT_EQ(end.how, TaskEnd::kLost);
  EXPECT_NE(end.reason.find("could not be killed yet"), std::string::npos) << end.reason;
  ASSERT_TRUE(executor_->launch(shell(8, "true")));
  EXPECT_EQ(listener_->wait_exit(8).how, TaskEnd::kExited) << "others go on";
  ::waitpid(stuck, nullptr, 0);
  EXPECT_TRUE(wait_until_gone(stuck));
}

// It would keep the lock of the task root, and the next daemon from starting.
TEST_F(ExecutorTest, WhoOpensAFileDiesWithItsSupervisorAlsoWhereThatHangs) {
  const auto folder = directory_.path("hangs");
  std::filesystem::create_directory(folder);
  const HangingMount mount(folder);
  if (!mount) GTEST_SKIP() << "needs the right to mount";
  ASSERT_TRUE(executor_->launch(shell(7, "echo $PPID > supervisor; exec sleep 1000")));
  const pid_t supervisor = wait_for_pid(directory_.path("supervisor"));
  const pid_t task = listener_->wait_started(7).pid;
  executor_->open_file(7, 1, folder + "/state", [](const Result<UniqueFd>&) {});
  pid_t opener = 0;
  ASSERT_TRUE(wait_until([&] {
    for (const pid_t process : descendants(supervisor))
      if (process != task) opener = process;
    return opener != 0;
  }));
  // Neither sees the other's end.
  ::kill(supervisor, SIGSTOP);
  ::kill(executor_->warden_pid(), SIGKILL);
  ::kill(supervisor, SIGKILL);
  EXPECT_TRUE(wait_until_gone(opener));
}

TEST_F(ExecutorTest, AStoppedSupervisorObeysAllTheSame) {
  ASSERT_TRUE(executor_->launch(shell(7, "echo $PPID > supervisor; exec sleep 1000")));
  ASSERT_EQ(::kill(wait_for_pid(directory_.path("supervisor")), SIGSTOP), 0);
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kCancelled);
}

TEST_F(ExecutorTest, DestructionLeavesNothing) {
  ASSERT_TRUE(executor_->launch(shell(
      7, detached_sleeper(directory_.path("detached")) + "; echo $$ > task; exec sleep 1000")));
  const pid_t task = wait_for_pid(directory_.path("task"));
  const pid_t detached = wait_for_pid(directory_.path("detached"));
  const pid_t warden = executor_->warden_pid();
  listener_.reset();
  executor_.reset();
  for (const pid_t pid : {task, detached, warden}) EXPECT_FALSE(process_exists(pid));
}

TEST(ExecutorStart, IsRefusedOnceThereAreThreads) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> done = false;
    std::thread thread([&] { done.wait(false); });
    const auto executor = Executor::start({});
    const bool refused = !executor && executor.error().code == ErrorCode::kConflict;
    done = true;
    done.notify_all();
    thread.join();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace tierpilot
