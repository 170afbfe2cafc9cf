#include "daemon/probe/active/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

struct Outcome {
  Status status;
  std::vector<std::string> lines;
};

Outcome run(const std::function<void(const LineSink&)>& work,
            std::chrono::milliseconds timeout = 30s) {
  Outcome outcome;
  outcome.status =
      run_in_child(work, timeout, [&](std::string_view line) { outcome.lines.emplace_back(line); });
  return outcome;
}

TEST(RunInChild, ForwardsEveryLineInOrder) {
  const auto outcome = run([](const LineSink& line) {
    for (int i = 0; i < 5000; ++i) line(std::to_string(i));
  });
  ASSERT_TRUE(outcome.status) << outcome.status.error().message;
  ASSERT_EQ(outcome.lines.size(), 5000U);
  EXPECT_EQ(outcome.lines.front(), "0");
  EXPECT_EQ(outcome.lines.back(), "4999");
}

TEST(RunInChild, WorksInAnotherProcess) {
  const pid_t self = getpid();
  const auto outcome = run([](const LineSink& line) { line(std::to_string(getpid())); });
  ASSERT_EQ(outcome.lines.size(), 1U);
  EXPECT_NE(outcome.lines[0], std::to_string(self));
}

TEST(RunInChild, ADeathIsToldAndWhatWasSaidBeforeIsKept) {
  const auto outcome = run([](const LineSink& line) {
    line("first");
    raise(SIGKILL);
  });
  ASSERT_FALSE(outcome.status);
  EXPECT_EQ(outcome.status.error().code, ErrorCode::kIo);
  EXPECT_NE(outcome.status.error().message.find("signal 9"), std::string::npos);
  EXPECT_EQ(outcome.lines, std::vector<std::string>{"first"});
}

TEST(RunInChild, IsStoppedAtTheDeadline) {
  pid_t child = 0;
  const auto status = run_in_child(
      [](const LineSink& line) {
        line(std::to_string(getpid()));
        for (;;) pause();
      },
      200ms, [&](std::string_view line) { child = std::stoi(std::string(line)); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kTimeout);
  ASSERT_GT(child, 0);
  EXPECT_EQ(kill(child, 0), -1) << "the child is gone and reaped";
  EXPECT_EQ(errno, ESRCH);
}

TEST(RunInChild, AnExceptionIsAStatus) {
  const auto outcome = run([](const LineSink&) { throw std::runtime_error("x"); });
  ASSERT_FALSE(outcome.status);
  EXPECT_NE(outcome.status.error().message.find("status 2"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot
