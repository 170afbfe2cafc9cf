#include "tests/unit/exec/harness.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/clock.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

}  // namespace

bool wait_until(const std::function<bool()>& condition) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!condition()) {
    if (SteadyClock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

TempDirectory::TempDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "tierpilot-exec-XXXXXX").string();
  path_ = ::mkdtemp(name.data()) ? name : "";
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string wait_for_line(const std::string& path) {
  std::string text;
  EXPECT_TRUE(wait_until([&] { return (text = read_text(path)).ends_with('\n'); })) << path;
  return text.substr(0, text.find('\n'));
}

pid_t wait_for_pid(const std::string& path) {
  return std::atoi(wait_for_line(path).c_str());
}

bool process_exists(pid_t pid) {
  return pid > 0 && ::kill(pid, 0) == 0;
}

bool wait_until_gone(pid_t pid) {
  return wait_until([&] { return !process_exists(pid); });
}

size_t open_fds(pid_t pid) {
  return Sysroot().list(fmt::format("/proc/{}/fd", pid)).size();
}

TaskLaunch shell_task(uint64_t id, const std::string& script, const std::string& directory) {
  return {.task_id = id,
          .attempt = 1,
          .argv = {"/bin/sh", "-c", script},
          .env = {{"PATH", "/usr/bin:/bin"}},
          .working_directory = directory,
          .log_directory = fmt::format("{}/{}", directory, id)};
}

std::string detached_sleeper(const std::string& pid_file) {
  return fmt::format("(env -i /usr/bin/setsid /bin/sh -c 'echo $$ > {}; exec sleep 1000' &)",
                     pid_file);
}

std::string fork_bomb() {
  return "body='echo x >> links; [ $(wc -l < links) -gt 60 ] || { (setsid sh -c \"$1\" b \"$1\" "
         "&); "
         "(setsid sh -c \"$1\" b \"$1\" &); }; exec sleep 1000'; sh -c \"$body\" b \"$body\"";
}

void Listener::listen(int timeout_ms) {
  pollfd wait{executor_.event_fd(), POLLIN, 0};
  ::poll(&wait, 1, timeout_ms);
  for (auto& event : executor_.poll()) {
    if (auto* start = std::get_if<TaskStarted>(&event)) started.push_back(*start);
    if (auto* exit = std::get_if<ProcessExit>(&event)) exits.push_back(*exit);
    if (auto* clear = std::get_if<TaskCleared>(&event)) cleared.push_back(*clear);
  }
}

ProcessExit Listener::wait_exit(uint64_t id) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(kPatienceMs);
  while (SteadyClock::now() < end) {
    const auto found = std::find_if(exits.rbegin(), exits.rend(),
                                    [&](const auto& exit) { return exit.task_id == id; });
    if (found != exits.rend()) return *found;
    listen(100);
  }
  ADD_FAILURE() << "no exit of task " << id;
  return {.task_id = id, .how = TaskEnd::kLost};
}

TaskStarted Listener::wait_started(uint64_t id) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(kPatienceMs);
  while (SteadyClock::now() < end) {
    for (const auto& start : started) {
      if (start.task_id == id) return start;
    }
    listen(100);
  }
  ADD_FAILURE() << "task " << id << " did not start";
  return {};
}

std::string Listener::wait_cleared(uint64_t id) {
  const auto end = SteadyClock::now() + std::chrono::milliseconds(kPatienceMs);
  while (SteadyClock::now() < end) {
    for (const auto& clear : cleared)
      if (clear.task_id == id) return clear.left;
    listen(100);
  }
  return "not told";
}

size_t Listener::exits_of(uint64_t id) const {
  return static_cast<size_t>(std::count_if(exits.begin(), exits.end(),
                                           [&](const auto& exit) { return exit.task_id == id; }));
}

void ExecutorTest::start(ExecutorOptions options) {
  start_without_lease(std::move(options));
  if (executor_) hold_lease();
}

void ExecutorTest::start_without_lease(ExecutorOptions options) {
  if (options.task_root.empty()) options.task_root = directory_.path();
  listener_.reset();
  executor_.reset();
  auto executor = Executor::start(std::move(options));
  ASSERT_TRUE(executor) << executor.error().message;
  executor_ = std::move(*executor);
  listener_ = std::make_unique<Listener>(*executor_);
}

void ExecutorTest::hold_lease(int64_t ms) {
  const int64_t now_ns = system_clock().boot_ns();
  const auto status = executor_->extend_lease(now_ns + ms * 1'000'000, now_ns);
  ASSERT_TRUE(status) << status.error().message;
}

TaskLaunch ExecutorTest::shell(uint64_t id, const std::string& script) {
  return shell_task(id, script, directory_.path());
}

ProcessExit ExecutorTest::run(const TaskLaunch& task) {
  const auto status = executor_->launch(task);
  EXPECT_TRUE(status) << status.error().message;
  return status ? listener_->wait_exit(task.task_id) : ProcessExit{.how = TaskEnd::kLost};
}

}  // namespace tierpilot
