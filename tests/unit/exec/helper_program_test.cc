#include "daemon/exec/helper_program.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace tierpilot {
namespace {

TEST(AskProgram, GivesWhatItWritesAndNothingOfTheOwnEnvironment) {
  const auto said =
      ask_program({"/bin/sh", {"-c", "cat; echo $A-$HOME"}, {{"A", "b"}}}, "in\n", 5000);
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "in\nb-\n");
}

TEST(AskProgram, OneThatReadsNothingGetsNoSignalBack) {
  const auto said = ask_program({"/bin/true"}, std::string(1 << 20, 'x'), 5000);
  EXPECT_TRUE(said) << said.error().message;
}

TEST(AskProgram, FailuresAreToldWithWhatItSaid) {
  const auto failed = ask_program({"/bin/sh", {"-c", "echo no daemon; exit 1"}}, "", 5000);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(failed.error().message.find("no daemon"), std::string::npos);
  EXPECT_FALSE(ask_program({"/no/such/program"}, "", 5000));
}

TEST(AskProgram, OneThatHangsIsKilledWithItsChildren) {
  const auto hangs = ask_program({"/bin/sh", {"-c", "sleep 100; echo late"}}, "", 200);
  ASSERT_FALSE(hangs);
  EXPECT_EQ(hangs.error().code, ErrorCode::kTimeout);
}

TEST(AskProgram, WhatItLeavesBehindIsNotWaitedForAndGoesWithIt) {
  const auto said = ask_program({"/bin/sh", {"-c", "sleep 1000 & echo $!"}}, "", 60'000);
  ASSERT_TRUE(said) << said.error().message;
  const pid_t left = std::stoi(*said);
  for (int tries = 0; tries < 1000 && ::kill(left, 0) == 0; ++tries) ::usleep(10'000);
  EXPECT_NE(::kill(left, 0), 0);
}

TEST(FindProgram, LooksInThePath) {
  EXPECT_NE(find_program("sh"), "");
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program-at-all"), "");
}

TEST(StayingProgram, RunsUntilItIsEnded) {
  auto program = StayingProgram::start({"/bin/sh", {"-c", "sleep 100"}}, "/dev/null");
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_TRUE(program->is_running());
  const pid_t pid = program->pid();
  program->end();
  EXPECT_FALSE(program->is_running());
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(StayingProgram, OneThatEndsIsNoticed) {
  auto program = StayingProgram::start({"/bin/true"}, "/dev/null");
  ASSERT_TRUE(program);
  for (int tries = 0; tries < 1000 && program->is_running(); ++tries) ::usleep(10'000);
  EXPECT_FALSE(program->is_running());
}

}  // namespace
}  // namespace tierpilot
