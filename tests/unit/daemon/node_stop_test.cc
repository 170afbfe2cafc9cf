// How a daemon ends, and what the next one finds.
#include "base/clock.h"
#include "node_fixture.h"
#include "rpc/protocol.h"

namespace tierpilot {
namespace {

TEST_F(NodeTest, SigtermCancelsFlushesAndExitsClean) {
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(until_heard("started", {1, 1}));
  const pid_t task = coordinator->heard("started", {1, 1})->pid;
  ::kill(daemon, SIGTERM);
  int wait_status = -1;
  ASSERT_TRUE(
      coordinator->run_until([&] { return ::waitpid(daemon, &wait_status, WNOHANG) == daemon; }));
  daemon = -1;
  EXPECT_TRUE(WIFEXITED(wait_status));
  EXPECT_EQ(WEXITSTATUS(wait_status), 0);
  ASSERT_TRUE(coordinator->heard("exited", {1, 1}));
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->how, "cancelled");
  EXPECT_EQ(coordinator->farewells, 1);
  EXPECT_NE(::kill(task, 0), 0);
  EXPECT_FALSE(fs::exists(root / "n1.sock"));
}

// Both daemons are of one node: the first is killed when its task has ended and nobody knows.
TEST_F(NodeTest, AnEndThatNobodyHeardOfIsToldByTheNextDaemon) {
  coordinator->acknowledge = false;
  const auto marker = root / "ran";
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sh", "-c", "echo x >> " + marker.native()}));
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  end(daemon, SIGKILL);
  coordinator->events.clear();
  coordinator->acknowledge = true;
  daemon = spawn("n1", "calibrate = false\npassive = false\n");
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->how, "exited");
  const auto& registrations = coordinator->registrations;
  ASSERT_EQ(registrations.size(), 2u);
  EXPECT_EQ(registrations[1].predecessors, std::vector{registrations[0].instance});
  EXPECT_EQ(registrations[1].live, (std::vector<AttemptId>{{1, 1}}));
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sh", "-c", "echo x >> " + marker.native()}));
  // Once it is acknowledged it is no news any more.
  const auto updates = coordinator->updates;
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->updates > updates + 1; }));
  EXPECT_EQ(fs::file_size(marker), 2u) << "it ran again";
  end(daemon, SIGKILL);
  coordinator->events.clear();
  daemon = spawn("n1", "calibrate = false\npassive = false\n");
  ASSERT_TRUE(coordinator->run_until([&] { return registrations.size() == 3; }));
  EXPECT_TRUE(registrations[2].live.empty());
}

TEST_F(NodeTest, SigtermLetsATaskEndFirst) {
  end(daemon, SIGKILL);
  drain_s = 600;
  daemon = spawn("n1", "calibrate = false\npassive = false\n");
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 2; }));
  const auto gate = root / "gate";
  ASSERT_TRUE(coordinator->start(
      {1, 1}, {"/bin/sh", "-c", "while [ ! -e " + gate.native() + " ]; do sleep 0.05; done"}));
  ASSERT_TRUE(until_heard("started", {1, 1}));
  ::kill(daemon, SIGTERM);
  ASSERT_TRUE(coordinator->run_until([&] { return !coordinator->takes_none.empty(); }));
  EXPECT_EQ(coordinator->takes_none, "the node is stopping");
  const auto refused = coordinator->start({2, 1}, {"/bin/true"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  std::ofstream(gate) << "open";
  int wait_status = -1;
  ASSERT_TRUE(
      coordinator->run_until([&] { return ::waitpid(daemon, &wait_status, WNOHANG) == daemon; }));
  daemon = -1;
  EXPECT_TRUE(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->how, "exited");
}

TEST_F(NodeTest, ASecondSigtermEndsTheWait) {
  end(daemon, SIGKILL);
  drain_s = 600;
  daemon = spawn("n1", "calibrate = false\npassive = false\n");
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 2; }));
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(until_heard("started", {1, 1}));
  ::kill(daemon, SIGTERM);
  ASSERT_TRUE(coordinator->run_until([&] { return !coordinator->takes_none.empty(); }));
  ::kill(daemon, SIGTERM);
  int wait_status = -1;
  ASSERT_TRUE(
      coordinator->run_until([&] { return ::waitpid(daemon, &wait_status, WNOHANG) == daemon; }));
  daemon = -1;
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->how, "cancelled");
}

}  // namespace
}  // namespace tierpilot
