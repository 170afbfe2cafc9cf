// A running executor with a private directory, and short ways to say what a task should do.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/exec/executor.h"

namespace tierpilot {

// Long enough for a loaded machine under a sanitizer; no test waits for it to pass.
inline constexpr int kPatienceMs = 30'000;

class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  std::string path(const std::string& name = "") const {
    return path_ + (name.empty() ? "" : "/" + name);
  }

 private:
  std::string path_;
};

bool wait_until(const std::function<bool()>& condition);
std::string read_text(const std::string& path);
// Waits until the file has a whole line.
std::string wait_for_line(const std::string& path);
pid_t wait_for_pid(const std::string& path);
bool process_exists(pid_t pid);
bool wait_until_gone(pid_t pid);
size_t open_fds(pid_t pid);

// `/bin/sh -c script` with a PATH, in `directory`.
TaskLaunch shell_task(uint64_t id, const std::string& script, const std::string& directory);
// A shell line: starts a process in another session, without environment, whose parent is gone and
// whose id is then in `pid_file`.
std::string detached_sleeper(const std::string& pid_file);
// A shell line whose processes start two more each, in sessions of their own, until 60 have written
// a line to `links`; then they stay.
std::string fork_bomb();

// Collects what the executor tells.
class Listener {
 public:
  explicit Listener(Executor& executor) : executor_(executor) {}
  // Fails the test and returns kLost when it does not come.
  ProcessExit wait_exit(uint64_t id);
  TaskStarted wait_started(uint64_t id);
  // What is left of it, as told; "not told" when that does not come.
  std::string wait_cleared(uint64_t id);
  size_t exits_of(uint64_t id) const;
  void listen(int timeout_ms);

  std::vector<TaskStarted> started;
  std::vector<ProcessExit> exits;
  std::vector<TaskCleared> cleared;

 private:
  Executor& executor_;
};

class ExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }
  void start(ExecutorOptions options);
  void start_without_lease(ExecutorOptions options);
  void hold_lease(int64_t ms = 600'000);
  TaskLaunch shell(uint64_t id, const std::string& script);
  ProcessExit run(const TaskLaunch& task);

  TempDirectory directory_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace tierpilot
