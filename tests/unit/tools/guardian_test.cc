#include "tools/demo/guardian.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tierpilot::demo {
namespace {

// A guardian in a process of its own; its descendants say that they live by holding `alive`, the
// write end of a pipe.
class GuardianTest : public testing::Test {
 protected:
  GuardianTest() { EXPECT_EQ(pipe(alive_), 0); }
  ~GuardianTest() override { close(alive_[0]); }

  void start(const std::function<int()>& work, int64_t grace_ms = 200) {
    guardian_ = fork();
    if (guardian_ == 0) {
      close(alive_[0]);
      const int code = Guardian().run(work, grace_ms);
      _exit(code);
    }
    close(alive_[1]);
  }
  int wait_for_guardian() {
    int status = 0;
    while (waitpid(guardian_, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // A worker writes a byte when it is ready.
  void wait_until_ready() {
    char byte;
    ASSERT_EQ(read(alive_[0], &byte, 1), 1);
  }
  bool all_dead() {
    char byte;
    return read(alive_[0], &byte, 1) == 0;  // end of file: nobody holds the other end
  }
  void ready() { EXPECT_EQ(write(alive_[1], "r", 1), 1); }

  // A descendant in a session of its own that ignores SIGTERM.
  static void spawn_stubborn() {
    if (fork() != 0) return;
    setsid();
    signal(SIGTERM, SIG_IGN);
    if (fork() == 0) signal(SIGTERM, SIG_IGN);
    for (;;) pause();
  }

  pid_t guardian_ = -1;
  int alive_[2];
};

TEST_F(GuardianTest, GivesTheWorksExitCode) {
  start([] { return 42; });
  EXPECT_EQ(wait_for_guardian(), 42);
  EXPECT_TRUE(all_dead());
}

TEST_F(GuardianTest, LeavesNoDescendantWhenTheWorkEnds) {
  start([] {
    spawn_stubborn();
    return 0;
  });
  EXPECT_EQ(wait_for_guardian(), 0);
  EXPECT_TRUE(all_dead());
}

TEST_F(GuardianTest, LeavesNoDescendantOnASignal) {
  start([this] {
    spawn_stubborn();
    ready();
    for (;;) pause();
    return 0;
  });
  wait_until_ready();
  kill(guardian_, SIGINT);
  EXPECT_EQ(wait_for_guardian(), 128 + SIGINT);
  EXPECT_TRUE(all_dead());
}

TEST_F(GuardianTest, LeavesNoDescendantWhenTheWorkCrashes) {
  start([]() -> int {
    spawn_stubborn();
    kill(getpid(), SIGKILL);
    return 0;
  });
  EXPECT_EQ(wait_for_guardian(), 128 + SIGKILL);
  EXPECT_TRUE(all_dead());
}

TEST_F(GuardianTest, AWorkerThatIgnoresSignalsIsKilled) {
  start([this] {
    signal(SIGTERM, SIG_IGN);
    ready();
    for (;;) pause();
    return 0;
  });
  wait_until_ready();
  kill(guardian_, SIGTERM);
  EXPECT_EQ(wait_for_guardian(), 128 + SIGTERM);
  EXPECT_TRUE(all_dead());
}

TEST_F(GuardianTest, TheWorkDiesWithItsGuardian) {
  start([this] {
    ready();
    for (;;) pause();
    return 0;
  });
  wait_until_ready();
  kill(guardian_, SIGKILL);
  EXPECT_EQ(wait_for_guardian(), -SIGKILL);
  EXPECT_TRUE(all_dead());
}

}  // namespace
}  // namespace tierpilot::demo
