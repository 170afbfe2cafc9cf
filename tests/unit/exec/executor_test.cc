// What a task gets, and what comes back of it.
#include "daemon/exec/executor.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "daemon/exec/memory_policy.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

TEST_F(ExecutorTest, TellsTheExitCode) {
  const auto exit = run(shell(7, "exit 3"));
  EXPECT_EQ(exit.how, TaskEnd::kExited);
  EXPECT_EQ(exit.exit_code, 3);
  EXPECT_FALSE(exit.signal);
  EXPECT_EQ(exit.attempt, 1u);
  EXPECT_EQ(exit.reason, "exited with code 3");
}

TEST_F(ExecutorTest, TellsTheSignal) {
  const auto exit = run(shell(7, "kill -SEGV $$"));
  EXPECT_EQ(exit.how, TaskEnd::kSignalled);
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_NE(exit.reason.find("Segmentation fault"), std::string::npos) << exit.reason;
}

TEST_F(ExecutorTest, TellsTheStartBeforeTheExit) {
  ASSERT_TRUE(executor_->launch(shell(7, "echo $$ > pid; sleep 1000")));
  const auto started = listener_->wait_started(7);
  EXPECT_EQ(started.pid, wait_for_pid(directory_.path("pid")));
  EXPECT_GT(started.boot_ns, 0);
  EXPECT_TRUE(listener_->exits.empty());
}

TEST_F(ExecutorTest, MeasuresTimeAndMemory) {
  const auto exit = run(shell(7, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  ASSERT_TRUE(exit.cpu_user_ns && exit.cpu_system_ns && exit.wall_ms && exit.max_rss_bytes);
  EXPECT_GT(*exit.cpu_user_ns, 1'000'000);
  EXPECT_LE(*exit.cpu_user_ns + *exit.cpu_system_ns, (*exit.wall_ms + 50) * 1'000'000);
  EXPECT_GT(*exit.max_rss_bytes, 100'000u);
  EXPECT_GT(exit.started_boot_ns.value_or(0), 0);
}

TEST_F(ExecutorTest, MeasuresTheLargestProcess) {
  // tail keeps what it may still have to print.
  const auto exit = run(shell(7, "head -c 60000000 /dev/zero | tail -c 60000000 > /dev/null"));
  EXPECT_GT(exit.max_rss_bytes.value_or(0), 50'000'000u);
  EXPECT_LT(exit.max_rss_bytes.value_or(0), 200'000'000u);
}

TEST_F(ExecutorTest, GivesWayToTheDaemon) {
  EXPECT_EQ(run(shell(7, "nice; cat /proc/self/oom_score_adj")).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), "5\n500\n");
}

TEST_F(ExecutorTest, CountsCpuTimeOfDetachedProcesses) {
  const std::string burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo x > done";
  const auto exit = run(shell(7, "(setsid sh -c '" + burn +
                                     "' &); until [ -e done ]; do sleep 0.01; "
                                     "done; sleep 0.2"));
  EXPECT_EQ(exit.exit_code, 0);
  EXPECT_GT(exit.cpu_user_ns.value_or(0), 10'000'000);
}

TEST_F(ExecutorTest, GivesExactlyTheEnvironment) {
  auto task = shell(7, "");
  task.argv = {"/usr/bin/env"};
  task.env = {{"GREETING", "a b=c\n\xff"}, {"EMPTY", ""}};
  EXPECT_EQ(run(task).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), "GREETING=a b=c\n\xff\nEMPTY=\n");
}

TEST_F(ExecutorTest, PassesArgumentsAsTheyAre) {
  auto task = shell(7, "");
  task.argv = {"printf", "%s|", "$HOME", "a  b", "*", "", "\xc3\x28"};
  EXPECT_EQ(run(task).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), "$HOME|a  b|*||\xc3\x28|");
}

TEST_F(ExecutorTest, RunsInTheWorkingDirectoryThatItMakes) {
  auto task = shell(7, "pwd -P");
  task.working_directory = directory_.path("work/deep");
  EXPECT_EQ(run(task).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")),
            std::filesystem::canonical(task.working_directory).string() + "\n");
}

TEST_F(ExecutorTest, WritesBothLogsWithTheirMode) {
  EXPECT_EQ(run(shell(7, "echo out; echo err >&2; cat")).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), "out\n");
  EXPECT_EQ(read_text(directory_.path("7/stderr.log")), "err\n");
  struct stat info {};
  ASSERT_EQ(::stat(directory_.path("7/stdout.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0137, 0u);
}

TEST_F(ExecutorTest, LargeOutputNeitherBlocksNorIsLost) {
  EXPECT_EQ(run(shell(7, "head -c 20000000 /dev/zero")).exit_code, 0);
  EXPECT_EQ(std::filesystem::file_size(directory_.path("7/stdout.log")), 20'000'000u);
}

TEST_F(ExecutorTest, BindsToItsCpus) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) last = cpu;
  }
  auto task = shell(7, "grep Cpus_allowed_list /proc/self/status | cut -f2");
  task.cpus = {last};
  EXPECT_EQ(run(task).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), std::to_string(last) + "\n");
}

// numa_maps names the policy of every mapping: "7f00 prefer (many):0 anon=1 ...".
TEST_F(ExecutorTest, GetsItsMemoryFromTheNodesItAsksFor) {
  if (::access("/proc/self/numa_maps", R_OK) != 0) GTEST_SKIP() << "a kernel without NUMA";
  if (!set_memory_policy({0}, false)) GTEST_SKIP() << "set_mempolicy is not allowed here";
  ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
  auto task = shell(7, "cut -d' ' -f2- /proc/self/numa_maps");
  task.memory_nodes = {0};
  EXPECT_EQ(run(task).exit_code, 0);
  const auto preferred = read_text(directory_.path("7/stdout.log"));
  EXPECT_TRUE(preferred.starts_with("prefer")) << preferred;
  EXPECT_NE(preferred.find(":0 "), std::string::npos) << preferred;
  task = shell(8, "cut -d' ' -f2- /proc/self/numa_maps");
  task.memory_nodes = {0};
  task.interleave_memory = true;
  EXPECT_EQ(run(task).exit_code, 0);
  EXPECT_TRUE(read_text(directory_.path("8/stdout.log")).starts_with("interleave:0 "));
}

TEST_F(ExecutorTest, MemoryOfANodeThatIsNotThereIsARefusedStart) {
  if (!set_memory_policy({0}, false)) GTEST_SKIP() << "set_mempolicy is not allowed here";
  ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
  auto task = shell(7, "true");
  task.memory_nodes = {1023};
  const auto exit = run(task);
  EXPECT_EQ(exit.how, TaskEnd::kCouldNotStart);
  EXPECT_NE(exit.reason.find("cannot prefer memory of NUMA nodes 1023"), std::string::npos)
      << exit.reason;
  task.task_id = 8;
  task.memory_nodes = {-1};
  EXPECT_EQ(executor_->launch(task).error().code, ErrorCode::kInvalid);
}

TEST_F(ExecutorTest, StartsWithCleanSignalsDescriptorsAndSession) {
  const auto exit = run(shell(
      7,
      "ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2; ulimit -c; "
      "cut -d' ' -f5,6 /proc/$$/stat | tr ' ' '\\n' | sort -u | grep -c ."));
  EXPECT_EQ(exit.exit_code, 0);
  // 0, 1, 2 and the directory that ls itself reads; one number for session and group.
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")),
            "4\n0000000000000000\n0000000000000000\n0\n1\n");
}

TEST_F(ExecutorTest, KeepsNoCapabilityEvenForRoot) {
  EXPECT_EQ(run(shell(7, "grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNewPrivs' /proc/self/status | cut -f2"))
                .exit_code,
            0);
  const std::string none = "0000000000000000\n";
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), none + none + none + none + "1\n");
  if (::geteuid() != 0) GTEST_SKIP() << "only root's bounding set can be checked: not root";
  EXPECT_EQ(run(shell(8, "grep CapBnd /proc/self/status | cut -f2")).exit_code, 0);
  EXPECT_EQ(read_text(directory_.path("8/stdout.log")), none);
}

TEST_F(ExecutorTest, SaysWhyATaskCannotStart) {
  auto task = shell(7, "");
  task.argv = {"no-such-program"};
  auto exit = run(task);
  EXPECT_EQ(exit.how, TaskEnd::kCouldNotStart);
  EXPECT_EQ(exit.reason, "task 7: cannot run 'no-such-program': No such file or directory");
  EXPECT_FALSE(exit.exit_code || exit.wall_ms || exit.cpu_user_ns);
  EXPECT_TRUE(listener_->started.empty());

  task = shell(8, "");
  task.argv = {"/etc/passwd"};
  EXPECT_EQ(run(task).reason, "task 8: cannot run '/etc/passwd': Permission denied");

  task = shell(9, "true");
  task.working_directory = "/no/such/place";
  EXPECT_EQ(run(task).reason,
            "task 9: cannot enter directory '/no/such/place': No such file or directory");

  task = shell(10, "true");
  task.log_directory = "/no/such/logs";
  EXPECT_EQ(run(task).reason,
            "task 10: cannot open '/no/such/logs/stdout.log': No such file or directory");

  task = shell(11, "true");
  task.cpus = {65535};
  EXPECT_EQ(run(task).reason, "task 11: cannot run on CPUs 65535: Invalid argument");

  task = shell(12, std::string(200'000, 'x'));
  EXPECT_EQ(run(task).reason, "task 12: cannot run '/bin/sh': Argument list too long");

  task = shell(13, "");
  task.argv = {"true"};
  task.env.clear();
  EXPECT_EQ(run(task).reason,
            "task 13: cannot run 'true': No such file or directory (its "
            "environment has no PATH)");
}

TEST_F(ExecutorTest, NamesAMissingInterpreterAndUsesNoShell) {
  const auto write_script = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory_.path(name)) << text;
    ::chmod(directory_.path(name).c_str(), 0755);
    return directory_.path(name);
  };
  auto task = shell(7, "");
  task.argv = {write_script("script", "#!/no/such/interpreter\n")};
  EXPECT_NE(run(task).reason.find("its interpreter is missing"), std::string::npos);
  task = shell(8, "");
  task.argv = {write_script("plain", "echo hello\n")};
  EXPECT_NE(run(task).reason.find("Exec format error"), std::string::npos);
}

TEST_F(ExecutorTest, SaysWhichPartOfTheCpusIsNotAllowed) {
  if (::sysconf(_SC_NPROCESSORS_CONF) >= 1000) GTEST_SKIP() << "CPU 1000 exists here";
  auto task = shell(7, "true");
  task.cpus = {0, 1000};
  EXPECT_EQ(run(task).reason,
            "task 7: cannot run on CPUs 0,1000: some of them are offline or not "
            "allowed to this daemon");
}

TEST_F(ExecutorTest, RefusesImpossibleDescriptions) {
  const auto refused = [&](auto change) {
    auto task = shell(7, "true");
    change(task);
    const auto status = executor_->launch(task);
    EXPECT_FALSE(status);
    if (status) return std::string();
    EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
    return status.error().message;
  };
  EXPECT_EQ(refused([](auto& task) { task.argv.clear(); }), "task 7: the command is empty");
  EXPECT_EQ(refused([](auto& task) { task.argv = {""}; }), "task 7: the command is empty");
  refused([](auto& task) { task.argv.push_back(std::string("a\0b", 3)); });
  refused([](auto& task) { task.env.emplace_back("A=B", "c"); });
  refused([](auto& task) { task.env.emplace_back("", "c"); });
  refused([](auto& task) { task.working_directory = "relative"; });
  refused([](auto& task) { task.log_directory = ""; });
  refused([](auto& task) { task.cpus = {-1}; });
  refused([](auto& task) { task.cpus = {1, 1}; });
  refused([](auto& task) { task.time_limit_ms = -1; });
  refused([](auto& task) { task.memory_limit_bytes = 0; });
  refused([](auto& task) { task.given_folders = {"relative"}; });
  const auto message = refused([](auto& task) { task.argv.assign(300, std::string(1000, 'x')); });
  EXPECT_NE(message.find("task 7: "), std::string::npos) << message;
  EXPECT_NE(message.find("the limit is 262144"), std::string::npos) << message;
  EXPECT_EQ(run(shell(7, "true")).exit_code, 0);  // what was refused was not launched
}

TEST_F(ExecutorTest, LaunchesAnAttemptOnlyOnce) {
  const auto launch = [&](uint32_t attempt) {
    auto task = shell(7, "echo x >> runs; sleep 1000");
    task.attempt = attempt;
    return executor_->launch(task);
  };
  ASSERT_TRUE(launch(2));
  EXPECT_EQ(launch(2).error().code, ErrorCode::kConflict);
  EXPECT_EQ(launch(3).error().code, ErrorCode::kConflict) << "another attempt still runs";
  wait_for_line(directory_.path("runs"));
  ASSERT_TRUE(executor_->cancel(7, 2, 0));
  listener_->wait_exit(7);
  EXPECT_EQ(launch(2).error().code, ErrorCode::kConflict);
  EXPECT_EQ(launch(1).error().code, ErrorCode::kConflict);
  EXPECT_EQ(read_text(directory_.path("runs")), "x\n");
  EXPECT_TRUE(launch(3));
}

TEST_F(ExecutorTest, ForgetsOnlyWhatHasEnded) {
  ASSERT_TRUE(executor_->launch(shell(7, "sleep 1000")));
  executor_->forget(7);
  EXPECT_EQ(executor_->launch(shell(7, "true")).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  listener_->wait_exit(7);
  executor_->forget(7);
  EXPECT_TRUE(executor_->launch(shell(7, "true")));
}

TEST_F(ExecutorTest, FiveHundredQuickTasksLoseNothing) {
  constexpr uint64_t kTasks = 500;
  run(shell(100'000, "true"));
  const size_t own_fds = open_fds(::getpid()), warden_fds = open_fds(executor_->warden_pid());
  for (uint64_t id = 1; id <= kTasks; ++id) {
    auto task = shell(id, "");
    task.argv = {id % 2 ? "true" : "false"};
    ASSERT_TRUE(executor_->launch(task));
  }
  for (uint64_t id = 1; id <= kTasks; ++id) {
    const auto exit = listener_->wait_exit(id);
    EXPECT_EQ(exit.exit_code, id % 2 ? 0 : 1) << exit.reason;
    EXPECT_EQ(listener_->exits_of(id), 1u);
  }
  EXPECT_EQ(listener_->started.size(), kTasks + 1);
  EXPECT_EQ(open_fds(::getpid()), own_fds);
  // Supervisors report an exit just before their own.
  EXPECT_TRUE(wait_until([&] { return open_fds(executor_->warden_pid()) <= warden_fds; }));
}

TEST_F(ExecutorTest, EventFdWakesAnEdgeTriggeredLoopForEveryTask) {
  const UniqueFd loop(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(::epoll_ctl(loop.get(), EPOLL_CTL_ADD, executor_->event_fd(), &event), 0);
  for (uint64_t id = 1; id <= 20; ++id) {
    ASSERT_TRUE(executor_->launch(shell(id, "true")));
    while (listener_->exits_of(id) == 0) {
      ASSERT_EQ(::epoll_wait(loop.get(), &event, 1, kPatienceMs), 1);
      listener_->listen(0);
    }
  }
}

TEST_F(ExecutorTest, OnlyTheWardenMayOpenMoreThanUsual) {
  rlimit own{};
  ::getrlimit(RLIMIT_NOFILE, &own);
  const rlimit few{std::min<rlim_t>(256, own.rlim_max), own.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  start({});
  ::setrlimit(RLIMIT_NOFILE, &own);
  run(shell(1, "ulimit -Sn > limit"));
  rlimit of_warden{};
  ASSERT_EQ(::prlimit(executor_->warden_pid(), RLIMIT_NOFILE, nullptr, &of_warden), 0);
  EXPECT_EQ(of_warden.rlim_cur, own.rlim_max);
  EXPECT_EQ(read_text(directory_.path("limit")), std::to_string(few.rlim_cur) + "\n");
}

TEST_F(ExecutorTest, TheWardenIsSmall) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep shadow memory";
#endif
  for (uint64_t id = 1; id <= 50; ++id) run(shell(id, "true"));
  std::ifstream rollup("/proc/" + std::to_string(executor_->warden_pid()) + "/smaps_rollup");
  uint64_t private_kb = 0;
  for (std::string key; rollup >> key;) {
    uint64_t kb = 0;
    if ((key == "Private_Clean:" || key == "Private_Dirty:") && rollup >> kb) private_kb += kb;
  }
  ASSERT_GT(private_kb, 0u);
  RecordProperty("private_kb", static_cast<int>(private_kb));
  EXPECT_LT(private_kb, 8u * 1024);
}

}  // namespace
}  // namespace tierpilot
