#include "daemon/exec/exit_records.h"

#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "harness.h"

namespace tierpilot {
namespace {

class ExitRecords : public ExecutorTest {
 protected:
  std::string root() const { return directory_.path(); }
  std::vector<uint64_t> kept() const {
    std::vector<uint64_t> ids;
    for (const auto& exit : kept_exits(root())) ids.push_back(exit.task_id);
    return ids;
  }
};

TEST_F(ExitRecords, AnEndIsKeptBeforeAnybodyIsToldUntilItIsDropped) {
  run(shell(7, "exit 3"));
  run(shell(8, "kill -9 $$"));
  const auto exits = kept_exits(root());
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_EQ(exits[0].exit_code, 3);
  EXPECT_EQ(exits[0].reason, "exited with code 3");
  EXPECT_TRUE(exits[0].wall_ms.has_value());
  EXPECT_EQ(exits[1].signal, SIGKILL);
  drop_exit(root(), 7, 1);
  EXPECT_EQ(kept(), std::vector<uint64_t>{8});
}

TEST_F(ExitRecords, OnlyWhatTheTaskCameToByItselfIsKept) {
  auto task = shell(7, "sleep 1000");
  ASSERT_TRUE(executor_->launch(task));
  listener_->wait_started(7);
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kCancelled);
  task = shell(8, "");
  task.argv = {"no-such-program"};
  run(task);
  // Its data is not committed yet: it has to run again if the daemon dies now.
  task = shell(9, "true");
  task.keep_success = false;
  run(task);
  EXPECT_EQ(kept(), std::vector<uint64_t>{});
  task = shell(10, "false");
  task.keep_success = false;
  run(task);
  EXPECT_EQ(kept(), std::vector<uint64_t>{10});
}

// Whoever had to tell of it died in between.
TEST_F(ExitRecords, AnEndThatIsKeptIsNotLostWithWhoWasToTellIt) {
  for (const uint64_t id : {7, 8}) {
    ASSERT_TRUE(executor_->launch(
        shell(id, "echo $PPID > supervisor" + std::to_string(id) + "; exec sleep 1000")));
    ASSERT_TRUE(
        keep_exit(root(), {.task_id = id, .attempt = 1, .how = TaskEnd::kExited, .exit_code = 0}));
  }
  const pid_t supervisor = wait_for_pid(root() + "/supervisor7");
  wait_for_pid(root() + "/supervisor8");
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kExited);
  ASSERT_EQ(::kill(executor_->warden_pid(), SIGKILL), 0);
  EXPECT_EQ(listener_->wait_exit(8).how, TaskEnd::kExited);
}

TEST_F(ExitRecords, ATornRecordIsDropped) {
  run(shell(7, "true"));
  const auto path = root() + "/.exits/7-1";
  const auto whole = read_text(path);
  for (const auto& text :
       {whole.substr(0, whole.size() / 2), std::string(), std::string(70'000, 'x')}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(kept(), std::vector<uint64_t>{});
    EXPECT_FALSE(std::ifstream(path)) << "still there";
  }
  std::ofstream(root() + "/.exits/8-1") << whole;  // under a name that is not its own
  ::mkdir((root() + "/.exits/9-1").c_str(), 0700);
  EXPECT_EQ(kept(), std::vector<uint64_t>{});
}

TEST_F(ExitRecords, AFullDiskCostsTheRecordAndNotTheReport) {
  std::ofstream(root() + "/.exits") << "in the way";
  EXPECT_EQ(run(shell(7, "exit 3")).exit_code, 3);
}

TEST_F(ExitRecords, AStartThatFailsSaysWhoseFaultItIs) {
  auto task = shell(7, "");
  task.argv = {"no-such-program"};
  EXPECT_FALSE(run(task).node_fault);
  task = shell(8, "true");
  task.cpus = {65535};
  auto exit = run(task);
  EXPECT_EQ(exit.how, TaskEnd::kCouldNotStart);
  EXPECT_TRUE(exit.node_fault) << exit.reason;
  task = shell(9, "true");
  task.log_directory = "/proc/not-there";
  EXPECT_TRUE(run(task).node_fault);
  EXPECT_FALSE(run(shell(10, "exit 1")).node_fault);
}

TEST_F(ExitRecords, AKilledWardenIsTheMachinesFault) {
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  listener_->wait_started(7);
  ::kill(executor_->warden_pid(), SIGKILL);
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kLost);
  EXPECT_TRUE(exit.node_fault);
}

}  // namespace
}  // namespace tierpilot
