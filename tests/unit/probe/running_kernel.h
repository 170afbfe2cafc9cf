// For tests of the probe on the running kernel: a child to watch, and skips where a subject is off.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot {

// A child process in a group of its own, which works when told to.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    if (::pipe2(go_.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ > 0) {
      ::setpgid(pid_, pid_);
      return;
    }
    ::setpgid(0, 0);
    ::close(go_[1]);
    char told;
    if (::read(go_[0], &told, 1) != 1) ::_exit(1);
    work();
    ::_exit(0);
  }
  ~Child() {
    ::close(go_[0]);
    ::close(go_[1]);
    if (pid_ > 0) finish(SIGKILL);
  }

  int32_t pgid() const { return pid_; }
  void go() { ASSERT_EQ(::write(go_[1], "x", 1), 1); }
  // Exit status; with a signal, ends it first.
  int finish(int signal = 0) {
    if (signal) ::kill(pid_, signal);
    int status = -1;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  std::array<int, 2> go_{-1, -1};
  pid_t pid_ = -1;
};

inline const SubjectState& state_of(const PassiveProbe& probe, const std::string& subject) {
  for (const auto& state : probe.subjects())
    if (state.subject == subject) return state;
  throw std::logic_error("no subject " + subject);
}

inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

#define SKIP_WITHOUT(probe, name)                              \
  if (const auto& state = state_of(*(probe), name); !state.on) \
  GTEST_SKIP() << name << " is off: " << state.reason

}  // namespace tierpilot
