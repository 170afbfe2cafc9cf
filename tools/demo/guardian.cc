#include "tools/demo/guardian.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace tierpilot::demo {
namespace {

int64_t now_ms() {
  return system_clock().boot_ns() / 1'000'000;
}

// The next signal, or 0 after `timeout_ms`.
int next_signal(const sigset_t& set, int64_t timeout_ms) {
  const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
  const int signal = sigtimedwait(&set, nullptr, &timeout);
  return signal < 0 ? 0 : signal;
}

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // "pid (name) state ppid ...": the name may hold anything, also ") ".
  const size_t end = text.rfind(") ");
  return end == std::string::npos || end + 4 > text.size() ? 0 : std::atoi(text.c_str() + end + 4);
}

std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && parent_of(pid) == getpid()) pids.push_back(pid);
  }
  return pids;
}

void reap() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// A child's death hands its own children to us, so this goes on until there are none.
void end_children(const sigset_t& set, int64_t grace_ms) {
  const int64_t deadline_ms = now_ms() + grace_ms;
  std::set<pid_t> asked;
  for (;;) {
    reap();
    const auto left = children();
    if (left.empty()) return;
    const bool patient = now_ms() < deadline_ms;
    for (const pid_t pid : left)
      if (!patient || asked.insert(pid).second) kill(pid, patient ? SIGTERM : SIGKILL);
    next_signal(set, patient ? 50 : 5);
  }
}

[[noreturn]] void become_worker(const std::function<int()>& work, pid_t guardian,
                                const sigset_t& old_mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(1);  // it died before the line above
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  const int code = work();
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);  // not exit(): what the parent has registered is the parent's
}

struct Ended {
  int signal_to_us = 0;
  int status = 0;
};

Ended wait_for_worker(pid_t worker, const sigset_t& set, int64_t grace_ms) {
  Ended ended;
  int64_t kill_at_ms = INT64_MAX;
  for (;;) {
    const int signal = next_signal(set, 200);
    if (signal != 0 && signal != SIGCHLD && ended.signal_to_us == 0) {
      ended.signal_to_us = signal;
      kill_at_ms = now_ms() + grace_ms;
      kill(worker, SIGTERM);
    }
    if (now_ms() >= kill_at_ms) kill(worker, SIGKILL);
    if (waitpid(worker, &ended.status, WNOHANG) == worker) return ended;
  }
}

}  // namespace

Guardian::Guardian() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals_, signal);
  sigprocmask(SIG_BLOCK, &signals_, &old_mask_);
}

int Guardian::run(const std::function<int()>& work, int64_t grace_ms) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t guardian = getpid();
  const pid_t worker = fork();
  if (worker < 0) {
    fmt::print(stderr, "error: fork: {}\n", std::strerror(errno));
    return 1;
  }
  if (worker == 0) become_worker(work, guardian, old_mask_);
  const Ended ended = wait_for_worker(worker, signals_, grace_ms);
  end_children(signals_, grace_ms);
  if (ended.signal_to_us != 0) return 128 + ended.signal_to_us;
  if (WIFEXITED(ended.status)) return WEXITSTATUS(ended.status);
  fmt::print(stderr, "error: ended by signal {} ({})\n", WTERMSIG(ended.status),
             strsignal(WTERMSIG(ended.status)));
  return 128 + WTERMSIG(ended.status);
}

}  // namespace tierpilot::demo
