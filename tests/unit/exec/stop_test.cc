// How tasks are ended: all of a task, whatever it does against it.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>

#include "daemon/exec/process_tree.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

TEST_F(ExecutorTest, CancelEndsTheWholeGroup) {
  ASSERT_TRUE(
      executor_->launch(shell(7, "sh -c 'echo $$ > inner; sleep 1000; :' & sleep 1000; :")));
  const pid_t inner = wait_for_pid(directory_.path("inner"));
  ASSERT_TRUE(executor_->cancel(7, 1, 60'000));
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kCancelled);
  EXPECT_EQ(exit.signal, SIGTERM);
  EXPECT_FALSE(process_exists(inner));
}

TEST_F(ExecutorTest, CancelLetsATaskEndInOrder) {
  ASSERT_TRUE(executor_->launch(shell(7,
                                      "trap 'echo saved; exit 0' TERM; echo x > ready; "
                                      "while :; do sleep 0.01; done")));
  wait_for_line(directory_.path("ready"));
  ASSERT_TRUE(executor_->cancel(7, 1, 60'000));
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kCancelled);
  EXPECT_EQ(exit.exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), "saved\n");
}

TEST_F(ExecutorTest, CancelKillsWhatIgnoresSigterm) {
  ASSERT_TRUE(
      executor_->launch(shell(7, "trap '' TERM; echo x > ready; while :; do sleep 1; done")));
  wait_for_line(directory_.path("ready"));
  ASSERT_TRUE(executor_->cancel(7, 1, 50));
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kCancelled);
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_GE(exit.wall_ms.value_or(0), 50);
}

TEST_F(ExecutorTest, CancelKillsAStoppedTask) {
  ASSERT_TRUE(executor_->launch(shell(7, "echo x > ready; kill -STOP $$")));
  wait_for_line(directory_.path("ready"));
  ASSERT_TRUE(executor_->cancel(7, 1, 20));
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kCancelled);
}

TEST_F(ExecutorTest, CancelEndsDetachedProcesses) {
  ASSERT_TRUE(executor_->launch(
      shell(7, detached_sleeper(directory_.path("detached")) + "; exec sleep 1000")));
  const pid_t detached = wait_for_pid(directory_.path("detached"));
  ASSERT_TRUE(process_exists(detached));
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  listener_->wait_exit(7);
  EXPECT_FALSE(process_exists(detached));
}

TEST_F(ExecutorTest, OneTasksEndLeavesAnothersDetachedProcessAlone) {
  for (uint64_t id : {7u, 8u}) {
    const auto file = directory_.path("detached" + std::to_string(id));
    ASSERT_TRUE(executor_->launch(shell(id, detached_sleeper(file) + "; exec sleep 1000")));
  }
  const pid_t first = wait_for_pid(directory_.path("detached7"));
  const pid_t second = wait_for_pid(directory_.path("detached8"));
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  listener_->wait_exit(7);
  EXPECT_FALSE(process_exists(first));
  EXPECT_TRUE(process_exists(second));
}

TEST_F(ExecutorTest, ATasksOwnEndTakesWhatItLeftBehind) {
  const auto exit = run(shell(7, "sleep 1000 & echo $! > group; " +
                                     detached_sleeper(directory_.path("detached")) +
                                     "; until [ -s detached ]; do sleep 0.01; done; exit 4"));
  EXPECT_EQ(exit.how, TaskEnd::kExited);
  EXPECT_EQ(exit.exit_code, 4);
  EXPECT_FALSE(process_exists(wait_for_pid(directory_.path("group"))));
  EXPECT_FALSE(process_exists(wait_for_pid(directory_.path("detached"))));
}

TEST_F(ExecutorTest, EndsAChainOfProcessesThatKeepDetaching) {
  // Each link starts the next in a new session and stays: 31 sessions, none a child of another's.
  const auto exit =
      run(shell(7,
                "body='echo x >> links; [ $1 -eq 0 ] || (setsid sh -c \"$2\" link "
                "$(($1 - 1)) \"$2\" &); exec sleep 1000'; "
                "(setsid sh -c \"$body\" link 30 \"$body\" &); "
                "until [ -e links ] && [ $(wc -l < links) -ge 31 ]; do sleep 0.01; done"));
  EXPECT_EQ(exit.reason, "exited with code 0") << "nothing was left";
}

TEST_F(ExecutorTest, EndsAForkBombWithoutACgroup) {
  ASSERT_TRUE(executor_->launch(shell(7, fork_bomb())));
  EXPECT_TRUE(wait_until([&] { return read_text(directory_.path("links")).size() > 20; }));
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  EXPECT_EQ(listener_->wait_exit(7).reason, "cancelled") << "nothing was left";
}

// cgroup v1 can freeze a process so that even SIGKILL waits, as a broken disk or network file does.
class Freezer {
 public:
  Freezer() { ::mkdir(path_.c_str(), 0755); }
  ~Freezer() {
    set("freezer.state", "THAWED");
    wait_until([&] { return ::rmdir(path_.c_str()) == 0 || errno != EBUSY; });
  }
  bool set(const std::string& file, const std::string& text) const {
    std::ofstream out(path_ + "/" + file);
    out << text << std::flush;
    return out.good();
  }
  std::string get(const std::string& file) const { return read_text(path_ + "/" + file); }

 private:
  const std::string path_ = fmt::format("/sys/fs/cgroup/freezer/tierpilot-test-{}", ::getpid());
};

TEST_F(ExecutorTest, SaysWhenAProcessCannotBeKilledAndKillsItLater) {
  start({.kill_patience_ms = 100});
  ASSERT_TRUE(executor_->launch(shell(7, "exec sleep 1000")));
  const auto started = listener_->wait_started(7);
  {
    const Freezer freezer;
    if (!freezer.set("cgroup.procs", std::to_string(started.pid)) ||
        !freezer.set("freezer.state", "FROZEN"))
      GTEST_SKIP() << "no writable cgroup v1 freezer";
    ASSERT_TRUE(wait_until([&] { return freezer.get("freezer.state") == "FROZEN\n"; }));
    ASSERT_TRUE(executor_->cancel(7, 1, 0));
    const auto exit = listener_->wait_exit(7);
    EXPECT_EQ(exit.how, TaskEnd::kCancelled);
    EXPECT_EQ(exit.reason, "cancelled; 1 of its processes could not be killed yet");
    EXPECT_FALSE(exit.exit_code || exit.signal);
    EXPECT_TRUE(process_exists(started.pid));
  }
  EXPECT_TRUE(wait_until_gone(started.pid));
  listener_->listen(50);
  EXPECT_EQ(listener_->exits_of(7), 1u);
}

TEST_F(ExecutorTest, FreezingNeedsACgroupAndATaskThatRuns) {
  start({.cgroup = "/"});
  EXPECT_EQ(executor_->freeze(7, 1).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(executor_->launch(shell(7, "exec sleep 1000")));
  const auto status = executor_->freeze(7, 1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(status.error().message.find("cannot be frozen"), std::string::npos);
}

TEST_F(ExecutorTest, TimeLimitEndsATask) {
  auto task = shell(7, "sleep 1000");
  task.time_limit_ms = 100;
  const auto exit = run(task);
  EXPECT_EQ(exit.how, TaskEnd::kTimedOut);
  EXPECT_EQ(exit.reason, "ran longer than its limit of 100 ms");
  EXPECT_GE(exit.wall_ms.value_or(0), 100);
}

TEST_F(ExecutorTest, TimeLimitKillsWhatIgnoresSigterm) {
  start({.time_limit_grace_ms = 30});
  auto task = shell(7, "trap '' TERM; while :; do sleep 1; done");
  task.time_limit_ms = 2000;  // the shell needs some of it, until it ignores the signal
  const auto exit = run(task);
  EXPECT_EQ(exit.how, TaskEnd::kTimedOut);
  EXPECT_EQ(exit.signal, SIGKILL);
}

TEST_F(ExecutorTest, WhoStandsStillHearsThatItsTimeIsOver) {
  start({.time_limit_grace_ms = 60'000});
  auto task = shell(7, "trap 'exit 3' TERM; echo ready; while :; do :; done");
  task.time_limit_ms = 2000;
  ASSERT_TRUE(executor_->launch(task));
  ASSERT_TRUE(
      wait_until([&] { return read_text(task.log_directory + "/stdout.log") == "ready\n"; }));
  executor_->stand_still(7, 1, true);
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kTimedOut);
  EXPECT_EQ(exit.exit_code, 3);
}

// Of a task whose supervisor has not heard of its end yet.
TEST_F(ExecutorTest, WhatHasEndedIsNotStopped) {
  const auto ended = [&](TaskLaunch task) {
    const auto name = std::to_string(task.task_id);
    EXPECT_TRUE(executor_->launch(task));
    const pid_t main = wait_for_pid(directory_.path("main" + name));
    const pid_t supervisor = wait_for_pid(directory_.path("supervisor" + name));
    EXPECT_EQ(::kill(supervisor, SIGSTOP), 0);
    std::ofstream(directory_.path("go" + name)) << "now";
    EXPECT_TRUE(wait_until([&] { return stands_still(main); })) << "nobody has reaped it";
    return supervisor;
  };
  const auto until_told = [&](uint64_t id) {
    const auto n = std::to_string(id);
    return shell(id, "echo $PPID > supervisor" + n + "; echo $$ > main" + n + "; until [ -e go" +
                         n + " ]; do sleep 0.01; done; exit 0");
  };
  ended(until_told(7));
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kExited);
  auto limited = until_told(8);
  limited.time_limit_ms = 2'000;
  const pid_t supervisor = ended(limited);
  std::this_thread::sleep_for(std::chrono::milliseconds(2'500));
  ASSERT_EQ(::kill(supervisor, SIGCONT), 0);
  EXPECT_EQ(listener_->wait_exit(8).how, TaskEnd::kExited);
}

TEST_F(ExecutorTest, ALongTimeLimitDoesNotOverflow) {
  auto task = shell(7, "exit 0");
  task.time_limit_ms = INT64_MAX;
  EXPECT_EQ(run(task).exit_code, 0);
}

TEST_F(ExecutorTest, CancelOfWhatDoesNotRunIsNotFound) {
  EXPECT_EQ(executor_->cancel(7, 1, 0).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  EXPECT_EQ(executor_->cancel(7, 2, 0).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  listener_->wait_exit(7);
  EXPECT_EQ(executor_->cancel(7, 1, 0).error().code, ErrorCode::kNotFound);
}

TEST_F(ExecutorTest, CancelRightAfterLaunchIsObeyed) {
  for (uint64_t id = 1; id <= 20; ++id) {
    ASSERT_TRUE(executor_->launch(shell(id, "sleep 1000")));
    ASSERT_TRUE(executor_->cancel(id, 1, id % 2 ? 0 : 600'000));
  }
  for (uint64_t id = 1; id <= 20; ++id)
    EXPECT_EQ(listener_->wait_exit(id).how, TaskEnd::kCancelled);
}

}  // namespace
}  // namespace tierpilot
