#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "base/clock.h"
#include "node_fixture.h"
#include "rpc/protocol.h"
#include "tests/support/hanging_mount.h"

namespace tierpilot {
namespace {

TEST_F(NodeTest, RunsATaskOverADataset) {
  const auto& registration = coordinator->registrations[0];
  EXPECT_EQ(registration.name, "n1");
  EXPECT_EQ(std::count(registration.tier_roles.begin(), registration.tier_roles.end(), "fast"), 1);
  EXPECT_EQ(std::count(registration.tier_roles.begin(), registration.tier_roles.end(), "slow"), 1);
  auto status = create("my-data");
  ASSERT_TRUE(status) << status.error().message;

  const AttemptId attempt{7, 1};
  const std::vector<std::string> command{
      "/bin/sh", "-c", "wc -c < $TIERPILOT_DATASET_MY_DATA; echo $TIERPILOT_TASK_ID >&2"};
  status = coordinator->start(attempt, command, {{"my-data", false}});
  ASSERT_TRUE(status) << status.error().message;
  ASSERT_TRUE(until_heard("exited", attempt));

  const auto* served = coordinator->heard("served", attempt);
  const auto* started = coordinator->heard("started", attempt);
  const auto* exited = coordinator->heard("exited", attempt);
  ASSERT_TRUE(served && started);
  EXPECT_LT(served->sequence, started->sequence);
  EXPECT_LT(started->sequence, exited->sequence);
  EXPECT_EQ(served->promoted_bytes, coordinator->dataset_bytes);
  EXPECT_GT(served->latency_ns, 0u);
  EXPECT_EQ(exited->how, "exited") << exited->reason;
  EXPECT_EQ(exited->code, 0);
  EXPECT_EQ(coordinator->read_log(attempt, "stdout"), "1048576\n");
  EXPECT_EQ(coordinator->read_log(attempt, "stderr"), "7\n");

  ASSERT_TRUE(coordinator->start(attempt, command, {{"my-data", false}}));
  ASSERT_TRUE(coordinator->start({8, 1}, command, {{"my-data", false}}));
  ASSERT_TRUE(until_heard("exited", {8, 1}));
  EXPECT_EQ(coordinator->heard("served", {8, 1})->local_bytes, coordinator->dataset_bytes);
  EXPECT_EQ(std::count_if(coordinator->events.begin(), coordinator->events.end(),
                          [&](const HeardEvent& event) {
                            return event.kind == "started" && event.attempt == attempt;
                          }),
            1)
      << "a repeated start runs nothing";
}

TEST_F(NodeTest, SaysWhetherItPlacesPagesAndWhatBecameOfAWish) {
  const auto placement = coordinator->registrations[0].features.find("placement");
  ASSERT_NE(placement, coordinator->registrations[0].features.end());
  coordinator->memory_tier = "slow";
  ASSERT_TRUE(coordinator->start({7, 1}, {"/bin/true"}));
  ASSERT_TRUE(until_heard("exited", {7, 1}));
  const auto* exited = coordinator->heard("exited", {7, 1});
  EXPECT_EQ(exited->code, 0) << exited->reason;
  if (placement->second == "on") {
    EXPECT_NE(exited->memory_tier.find("preferred"), std::string::npos) << exited->memory_tier;
  } else {
    EXPECT_NE(placement->second.find("one memory tier"), std::string::npos) << placement->second;
    EXPECT_EQ(exited->memory_tier, "no effect: this node has one memory tier");
  }
  coordinator->memory_tier = "";
  ASSERT_TRUE(coordinator->start({8, 1}, {"/bin/true"}));
  ASSERT_TRUE(until_heard("exited", {8, 1}));
  EXPECT_EQ(coordinator->heard("exited", {8, 1})->memory_tier, "");
}

TEST_F(NodeTest, APauseThatCannotBeIsRefusedWithAReason) {
  const auto pause = [&](AttemptId attempt) {
    auto request = coordinator->node->pauseRequest();
    request.initAttempt().setTask(attempt.task);
    request.getAttempt().setAttempt(attempt.attempt);
    request.setPaused(true);
    return coordinator->call(request.send().ignoreResult());
  };
  const auto unknown = pause({9, 1});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(coordinator->start({7, 1}, {"/bin/sleep", "100"}));
  ASSERT_TRUE(until_heard("started", {7, 1}));
  // With cgroups it can.
  if (const auto status = pause({7, 1}); !status) {
    EXPECT_NE(status.error().message.find("cannot be frozen: "), std::string::npos);
  }
}

TEST_F(NodeTest, CommitsWhatATaskWrote) {
  ASSERT_TRUE(create("d"));
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sh", "-c", "printf abc > $TIERPILOT_DATASET_D"},
                                 {{"d", true}}));
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  const auto* exited = coordinator->heard("exited", {1, 1});
  EXPECT_EQ(exited->how, "exited") << exited->reason;
  EXPECT_EQ(exited->written_versions, std::vector<uint64_t>{2});

  coordinator->dataset_bytes = 3;
  ASSERT_TRUE(
      coordinator->start({2, 1}, {"/bin/sh", "-c", "cat $TIERPILOT_DATASET_D"}, {{"d", false}}, 2));
  ASSERT_TRUE(until_heard("exited", {2, 1}));
  EXPECT_EQ(coordinator->read_log({2, 1}, "stdout"), "abc");
}

TEST_F(NodeTest, SaysWhyATaskCannotRun) {
  auto status = coordinator->start({1, 1}, {"/bin/true"}, {}, 1, 3);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted) << "another node may have as many";
  EXPECT_NE(status.error().message.find("3 compute units"), std::string::npos);

  ASSERT_TRUE(coordinator->start({2, 1}, {"/no/such/program"}));
  ASSERT_TRUE(until_heard("exited", {2, 1}));
  EXPECT_EQ(coordinator->heard("exited", {2, 1})->how, "could_not_start");
  EXPECT_NE(coordinator->heard("exited", {2, 1})->reason.find("/no/such/program"),
            std::string::npos);

  ASSERT_TRUE(coordinator->start({3, 1}, {"/bin/true"}, {{"nobody-has-it", false}}));
  ASSERT_TRUE(until_heard("exited", {3, 1}));
  EXPECT_EQ(coordinator->heard("exited", {3, 1})->how, "data_failed");
}

TEST_F(NodeTest, CancelEndsARunningTask) {
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(until_heard("started", {1, 1}));
  auto request = coordinator->node->cancelRequest();
  request.initAttempt().setTask(1);
  request.getAttempt().setAttempt(1);
  request.setReason("asked for");
  ASSERT_TRUE(coordinator->call(request.send().ignoreResult()));
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->how, "cancelled");
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->reason, "asked for");
}

TEST_F(NodeTest, ACheckpointThatHangsKeepsNobodyElseWaiting) {
  const auto folder = root / "hangs";
  fs::create_directory(folder);
  const HangingMount mount(folder);
  if (!mount) GTEST_SKIP() << "needs the right to mount";
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(until_heard("started", {1, 1}));
  const UniqueFd job(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (root / "n1/tasks/1-1/job.sock").c_str());
  ASSERT_EQ(::connect(job.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto line = fmt::format(R"({{"v":1,"type":"checkpoint","path":"{}/x","iteration":1}})"
                                "\n",
                                folder.native());
  ASSERT_EQ(::write(job.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  coordinator->run_until([] { return false; }, 300);
  ASSERT_TRUE(coordinator->start({2, 1}, {"/bin/true"}));
  EXPECT_TRUE(until_heard("exited", {2, 1}));
  EXPECT_FALSE(coordinator->heard("exited", {1, 1}));
  auto request = coordinator->node->cancelRequest();
  request.initAttempt().setTask(1);
  request.getAttempt().setAttempt(1);
  ASSERT_TRUE(coordinator->call(request.send().ignoreResult()));
  EXPECT_TRUE(until_heard("exited", {1, 1}));
}

class NodeWithFewDescriptors : public NodeTest {
 protected:
  static constexpr rlim_t kFew = 512;

  void SetUp() override {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max <= kFew) GTEST_SKIP() << "there are no more";
    rlimit few = before;
    few.rlim_cur = kFew;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    NodeTest::SetUp();
    ::setrlimit(RLIMIT_NOFILE, &before);
  }
};

TEST_F(NodeWithFewDescriptors, TheDaemonTakesAllThatItMayAndTasksKeepTheirs) {
  rlimit of_daemon{};
  ASSERT_EQ(::prlimit(daemon, RLIMIT_NOFILE, nullptr, &of_daemon), 0);
  EXPECT_EQ(of_daemon.rlim_cur, of_daemon.rlim_max);
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sh", "-c", "ulimit -Sn"}));
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  EXPECT_EQ(coordinator->read_log({1, 1}, "stdout"), std::to_string(kFew) + "\n");
}

TEST_F(NodeTest, TasksAreDeadBeforeTheLeaseEnds) {
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(coordinator->start({2, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(coordinator->start({3, 1}, {"/bin/sleep", "600"}));  // waits: two units
  for (const uint64_t id : {1, 2}) ASSERT_TRUE(until_heard("started", {id, 1}));
  const pid_t task = coordinator->heard("started", {1, 1})->pid;

  coordinator->answer = false;
  const uint64_t updates = coordinator->updates;
  // No answer is given to this update or a later one: no lease can end after this.
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->updates > updates; }));
  const int64_t lease_end_ns = system_clock().boot_ns() + kLeaseMs * 1'000'000LL;
  coordinator->go_away();
  ASSERT_TRUE(coordinator->run_until([&] { return ::kill(task, 0) != 0; }, kLeaseMs + 2000));
  EXPECT_LT(system_clock().boot_ns(), lease_end_ns);

  coordinator->answer = true;
  coordinator->listen();
  for (const uint64_t id : {1, 2, 3}) {
    ASSERT_TRUE(until_heard("exited", {id, 1})) << id;
    EXPECT_EQ(coordinator->heard("exited", {id, 1})->how, "lease_expired") << id;
  }
  EXPECT_EQ(coordinator->heard("started", {3, 1}), nullptr);
  ASSERT_EQ(coordinator->registrations.size(), 2u);
  EXPECT_EQ(coordinator->registrations[1].live.size(), 3u);
  EXPECT_EQ(coordinator->registrations[0].instance, coordinator->registrations[1].instance);
}

TEST_F(NodeTest, ResendsWhatWasNotAcknowledged) {
  coordinator->acknowledge = false;
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/true"}));
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  const auto exit_sequence = coordinator->heard("exited", {1, 1})->sequence;
  const uint64_t asked = coordinator->updates;
  coordinator->run_until([] { return false; }, 500);
  EXPECT_LE(coordinator->updates, asked + 3) << "who acknowledges nothing is not asked in a loop";

  coordinator->go_away();
  coordinator->events.clear();
  coordinator->acknowledge = true;
  coordinator->listen();
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  EXPECT_EQ(coordinator->heard("exited", {1, 1})->sequence, exit_sequence);
  EXPECT_EQ(coordinator->registrations.back().live, std::vector<AttemptId>({{1, 1}}));

  // Acknowledged now: neither resent nor live.
  const uint64_t updates = coordinator->updates;
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->updates > updates; }));
  coordinator->go_away();
  coordinator->events.clear();
  coordinator->listen();
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 3; }));
  EXPECT_TRUE(coordinator->registrations.back().live.empty());
  ASSERT_TRUE(coordinator->start({2, 1}, {"/bin/true"}));
  ASSERT_TRUE(until_heard("exited", {2, 1}));
  EXPECT_EQ(coordinator->heard("exited", {1, 1}), nullptr);
}

TEST_F(NodeTest, ATaskOutlivesAShortAbsenceOfTheCoordinator) {
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sleep", "600"}));
  ASSERT_TRUE(until_heard("started", {1, 1}));
  const pid_t task = coordinator->heard("started", {1, 1})->pid;
  coordinator->go_away();
  coordinator->listen();
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 2; }));
  EXPECT_EQ(coordinator->registrations[1].live, std::vector<AttemptId>({{1, 1}}));
  EXPECT_EQ(::kill(task, 0), 0);
}

TEST_F(NodeTest, KeepsTryingWhenItIsRefused) {
  coordinator->go_away();
  coordinator->refusal = Error{ErrorCode::kConflict, "node 'n1' is another instance's"};
  coordinator->listen();
  coordinator->run_until([] { return false; }, 500);
  coordinator->refusal.reset();
  EXPECT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 2; }));
}

TEST_F(NodeTest, TakesNothingFromACoordinatorThatItDoesNotUnderstand) {
  coordinator->go_away();
  coordinator->oldest_protocol = kProtocol + 1;
  const auto updates = coordinator->updates;
  coordinator->listen();
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 2; }));
  coordinator->run_until([] { return false; }, 500);
  EXPECT_EQ(coordinator->updates, updates);
  coordinator->oldest_protocol = kProtocol;
  EXPECT_TRUE(coordinator->run_until([&] { return coordinator->updates > updates; }));
}

TEST_F(NodeTest, FetchesFromAnotherDaemon) {
  coordinator->dataset_bytes = (5 << 20) + 77;
  ASSERT_TRUE(create("d"));
  const auto source = coordinator->registrations[0].data_address;
  other = spawn("n2", "calibrate = false\npassive = false\n");
  ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 2; }));
  ASSERT_TRUE(coordinator->start({1, 1}, {"/bin/sh", "-c", "wc -c < $TIERPILOT_DATASET_D"},
                                 {{"d", false}}, 1, 1, source));
  ASSERT_TRUE(until_heard("exited", {1, 1}));
  EXPECT_EQ(coordinator->heard("served", {1, 1})->fetched_bytes, coordinator->dataset_bytes);
  EXPECT_EQ(coordinator->read_log({1, 1}, "stdout"), "5242957\n");

  // The source dies: said, and nothing hangs.
  end(daemon, SIGKILL);
  coordinator->contents[{"e", 1}] = {0, 1};
  ASSERT_TRUE(coordinator->start({2, 1}, {"/bin/true"}, {{"e", false}}, 1, 1, source));
  ASSERT_TRUE(until_heard("exited", {2, 1}));
  EXPECT_EQ(coordinator->heard("exited", {2, 1})->how, "data_failed");
  EXPECT_NE(coordinator->heard("exited", {2, 1})->reason.find(source), std::string::npos);
}

// The promise is 30 MB and 1 % of a core; the share is only bounded loosely, as machines differ.
TEST_F(NodeTest, CostsLittleAtRest) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers cost memory of their own";
#endif
  other = spawn("n2", "rounds = 1\n");
  ASSERT_TRUE(
      coordinator->run_until([&] { return coordinator->registrations.size() == 2; }, 60'000));
  const auto cpu_ticks = [&] {
    std::ifstream stat("/proc/" + std::to_string(other) + "/stat");
    std::string word;
    for (int i = 0; i < 13; ++i) stat >> word;
    uint64_t user = 0, system = 0;
    stat >> user >> system;
    return user + system;
  };
  coordinator->run_until([] { return false; }, 1000);
  const auto before = cpu_ticks();
  const char* rest_s = std::getenv("TIERPILOT_REST_S");
  const int64_t rest_ms = rest_s ? std::atoll(rest_s) * 1000 : 5000;
  coordinator->run_until([] { return false; }, rest_ms);
  const double share = static_cast<double>(cpu_ticks() - before) /
                       static_cast<double>(::sysconf(_SC_CLK_TCK)) / (rest_ms / 1000.0);
  std::ifstream statm("/proc/" + std::to_string(other) + "/statm");
  uint64_t total = 0, resident_pages = 0;
  statm >> total >> resident_pages;
  const uint64_t resident_bytes = resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::printf("at rest: %.1f MB resident, %.2f %% of a core\n",
              static_cast<double>(resident_bytes) / 1e6, share * 100);
  EXPECT_LT(resident_bytes, 30'000'000u);
  EXPECT_LE(share, 0.01);
}

}  // namespace
}  // namespace tierpilot
