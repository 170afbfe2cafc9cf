// The logic on an invented cgroup tree, and what can be had of a real one.
#include "daemon/exec/cgroup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>

#include "daemon/exec/cgroup_find.h"
#include "tests/unit/exec/harness.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

class FakeCgroups : public ::testing::Test {
 protected:
  void SetUp() override {
    write("proc/self/mounts",
          "proc /proc proc rw 0 0\n"
          "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
          "cgroup2 /sys/fs/cgroup/uni\\040fied cgroup2 rw,nosuid 0 0\n");
    write("proc/self/cgroup", "4:memory:/v1\n0::/system.slice/tierpilotd.service\n");
  }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << text;
  }
  std::string read(const fs::path& path) { return read_text((root() / path).string()); }
  void make_group(const fs::path& group, const std::string& controllers) {
    write(group / "cgroup.procs", "1\n");
    write(group / "cgroup.kill", "");
    write(group / "cgroup.controllers", controllers);
    write(group / "cgroup.subtree_control", "");
  }
  // What the kernel makes by itself in a new cgroup.
  void fill(const fs::path& group) {
    for (const char* file : {"cgroup.procs", "cgroup.kill", "memory.max", "memory.swap.max",
                             "memory.oom.group", "cpuset.cpus", "cpu.max"})
      write(group / file, "");
  }
  fs::path root() const { return directory_.path(); }
  Sysroot sysroot() const { return Sysroot(root()); }

  const fs::path mount_ = "sys/fs/cgroup/uni fied";
  const fs::path own_ = mount_ / "system.slice/tierpilotd.service";
  const fs::path named_ = mount_ / "tierpilot/n1";
  TempDirectory directory_;
};

TEST_F(FakeCgroups, AnUndelegatedCgroupIsLeftAlone) {
  make_group(own_, "cpu memory");
  const auto tree = CgroupTree::open(sysroot(), "");
  EXPECT_FALSE(tree.limits().memory.on);
  EXPECT_NE(tree.limits().memory.why_not.find("Delegate=yes"), std::string::npos);
  EXPECT_TRUE(tree.limits().cgroup.empty());
  EXPECT_EQ(read(own_ / "cgroup.subtree_control"), "");
  EXPECT_FALSE(tree.create({.task_id = 7, .attempt = 1})->has_value());
}

TEST_F(FakeCgroups, ADelegatedCgroupGetsALeafForTheDaemon) {
  make_group(own_, "cpu memory");
  write(own_ / "daemon/cgroup.procs", "");
  if (::setxattr((root() / own_).c_str(), "user.delegate", "1", 1, 0) < 0)
    GTEST_SKIP() << "user.* attributes are not available in " << root();
  const auto tree = CgroupTree::open(sysroot(), "");
  EXPECT_EQ(read(own_ / "daemon/cgroup.procs"), "0");
  EXPECT_TRUE(tree.limits().memory.on) << tree.limits().memory.why_not;
  EXPECT_TRUE(tree.limits().cpu.on);
  EXPECT_TRUE(tree.limits().kill.on);
  EXPECT_FALSE(tree.limits().cpuset.on);
  EXPECT_NE(tree.limits().cpuset.why_not.find("'cpuset' is not offered"), std::string::npos);
}

TEST_F(FakeCgroups, SetsTheLimitsOfATask) {
  make_group(named_, "cpuset cpu io memory pids");
  const auto tree = CgroupTree::open(sysroot(), "/tierpilot/n1");
  fill(named_ / "task-7.2");
  const auto cgroup =
      tree.create({.task_id = 7, .attempt = 2, .cpus = {0, 1, 4}, .memory_limit_bytes = 64 << 20});
  ASSERT_TRUE(cgroup) << cgroup.error().message;
  ASSERT_TRUE(*cgroup);
  EXPECT_EQ(read(named_ / "task-7.2/memory.max"), "67108864");
  EXPECT_EQ(read(named_ / "task-7.2/memory.swap.max"), "0");
  EXPECT_EQ(read(named_ / "task-7.2/memory.oom.group"), "1");
  EXPECT_EQ(read(named_ / "task-7.2/cpuset.cpus"), "0-1,4");
  EXPECT_EQ(read(named_ / "task-7.2/cpu.max"), "") << "the cpuset already says it";
  ASSERT_TRUE((*cgroup)->kill());
  EXPECT_EQ(read(named_ / "task-7.2/cgroup.kill"), "1");
}

TEST_F(FakeCgroups, WhatIsSwappedToMemoryIsNotOfTheTasksLimit) {
  make_group(named_, "memory");
  const auto tree = CgroupTree::open(sysroot(), "/tierpilot/n1");
  fill(named_ / "task-7.2");
  TaskLaunch task{.task_id = 7, .attempt = 2, .swap_memory_bytes = 32 << 20};
  ASSERT_TRUE(tree.create(task));
  EXPECT_EQ(read(named_ / "task-7.2/memory.max"), "") << "no limit, none beside it";
  task.memory_limit_bytes = 64 << 20;
  fill(named_ / "task-7.2");
  ASSERT_TRUE(tree.create(task));
  EXPECT_EQ(read(named_ / "task-7.2/memory.max"), "100663296");
  task.swap_memory_bytes = UINT64_MAX;
  fill(named_ / "task-7.2");
  ASSERT_TRUE(tree.create(task));
  EXPECT_EQ(read(named_ / "task-7.2/memory.max"), "18446744073709551615") << "no overflow";
}

TEST_F(FakeCgroups, AQuotaStandsInForAMissingCpuset) {
  make_group(named_, "cpu");
  const auto tree = CgroupTree::open(sysroot(), "/tierpilot/n1");
  fill(named_ / "task-7.1");
  ASSERT_TRUE(tree.create({.task_id = 7, .attempt = 1, .cpus = {0, 1, 4}}));
  EXPECT_EQ(read(named_ / "task-7.1/cpu.max"), "300000 100000");
  EXPECT_EQ(read(named_ / "task-7.1/cpuset.cpus"), "");
}

TEST_F(FakeCgroups, ALimitThatCannotBeSetIsAnErrorOfTheTask) {
  make_group(named_, "memory");
  const auto tree = CgroupTree::open(sysroot(), "/tierpilot/n1");
  const auto cgroup = tree.create({.task_id = 7, .attempt = 1, .memory_limit_bytes = 4096});
  ASSERT_FALSE(cgroup);
  EXPECT_NE(cgroup.error().message.find("task-7.1/memory.max"), std::string::npos);
  EXPECT_FALSE(fs::exists(root() / named_ / "task-7.1"));
}

TEST_F(FakeCgroups, ReadsWhatATaskUsed) {
  make_group(named_, "");
  const auto tree = CgroupTree::open(sysroot(), "/tierpilot/n1");
  const auto cgroup = tree.create({.task_id = 7, .attempt = 1});
  ASSERT_TRUE(cgroup && *cgroup);
  const auto nothing = (*cgroup)->figures();
  EXPECT_FALSE(nothing.cpu_user_ns || nothing.peak_bytes || nothing.read_bytes);
  const fs::path group = named_ / "task-7.1";
  write(group / "cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 0\n");
  write(group / "memory.peak", "8192\n");
  write(group / "memory.events", "low 0\nhigh 0\nmax 4\noom 1\noom_kill 2\noom_group_kill 1\n");
  write(group / "io.stat",
        "8:0 rbytes=100 wbytes=5 rios=1 wios=1 dbytes=0 dios=0\n"
        "259:1 rbytes=11 wbytes=0 rios=1 wios=1 dbytes=0 dios=0\n");
  const auto figures = (*cgroup)->figures();
  EXPECT_EQ(figures.cpu_user_ns, 20'000);
  EXPECT_EQ(figures.cpu_system_ns, 10'000);
  EXPECT_EQ(figures.peak_bytes, 8192u);
  EXPECT_EQ(figures.read_bytes, 111u);
  EXPECT_EQ(figures.written_bytes, 5u);
  EXPECT_TRUE(figures.hit_memory_limit && figures.oom_killed);
}

TEST_F(FakeCgroups, FreezesAndThaws) {
  make_group(named_, "");
  write(named_ / "task-7.1/cgroup.freeze", "0");
  const auto cgroup = CgroupTree::open(sysroot(), "/tierpilot/n1").find(7, 1);
  ASSERT_TRUE(cgroup && cgroup->set_frozen(true));
  EXPECT_EQ(read(named_ / "task-7.1/cgroup.freeze"), "1");
  ASSERT_TRUE(cgroup->set_frozen(false));
  EXPECT_EQ(read(named_ / "task-7.1/cgroup.freeze"), "0");
}

TEST_F(FakeCgroups, EndsWhatAnEarlierDaemonLeft) {
  make_group(named_, "");
  write(named_ / "task-3.1/cgroup.kill", "");
  fs::create_directories(root() / named_ / "task-4.1");
  fs::create_directories(root() / named_ / "somebody");
  CgroupTree::open(sysroot(), "/tierpilot/n1");
  EXPECT_EQ(read(named_ / "task-3.1/cgroup.kill"), "1");
  EXPECT_FALSE(fs::exists(root() / named_ / "task-4.1"));
  EXPECT_TRUE(fs::exists(root() / named_ / "somebody"));
}

TEST_F(FakeCgroups, WhatCannotBeOwnedIsUnavailable) {
  for (const char* path : {"/", "..", "/../other", "/a/../.."}) {
    const auto home = find_cgroup_home(sysroot(), path);
    ASSERT_FALSE(home) << path;
    EXPECT_EQ(home.error().code, ErrorCode::kUnavailable);
  }
  write("proc/self/cgroup", "0::/../../outside\n");
  EXPECT_FALSE(find_cgroup_home(sysroot(), ""));
  write("proc/self/cgroup", "4:memory:/v1\n");
  EXPECT_FALSE(find_cgroup_home(sysroot(), ""));
  write("proc/self/mounts", "proc /proc proc rw 0 0\nbroken\n");
  EXPECT_EQ(find_cgroup_home(sysroot(), "").error().message, "no cgroup v2 hierarchy is mounted");
}

// A private cgroup below the real v2 root; removed with the test.
class RealCgroups : public ExecutorTest {
 protected:
  void SetUp() override {
    auto home = find_cgroup_home(Sysroot(), name_);
    if (!home) GTEST_SKIP() << home.error().message;
    group_ = home->directory;
    if (!fs::exists(group_ / "cgroup.kill")) GTEST_SKIP() << "cgroup.kill needs Linux 5.14";
    if (::access((group_ / "cgroup.procs").c_str(), W_OK) < 0) GTEST_SKIP() << "not root";
    start({.cgroup = name_});
  }
  void TearDown() override {
    listener_.reset();
    executor_.reset();
    if (group_.empty()) return;
    EXPECT_EQ(::rmdir(group_.c_str()), 0) << "task cgroups are left";
  }
  const std::string name_ = fmt::format("/tierpilot-test-{}", ::getpid());
  fs::path group_;
};

TEST_F(RealCgroups, ATaskRunsInItsOwnCgroupWhichIsRemoved) {
  const auto exit = run(shell(7, "grep ^0:: /proc/self/cgroup"));
  EXPECT_EQ(exit.exit_code, 0) << exit.reason;
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), fmt::format("0::{}/task-7.1\n", name_));
  EXPECT_TRUE(wait_until([&] { return !fs::exists(group_ / "task-7.1"); }));
  EXPECT_TRUE(executor_->limits().kill.on);
}

TEST_F(RealCgroups, WhoWasPausedHearsThatItIsToEnd) {
  ASSERT_TRUE(executor_->launch(
      shell(7, "trap 'echo heard; exit 3' TERM; echo ready > ready; while :; do sleep 0.1; done")));
  wait_for_line(directory_.path("ready"));
  ASSERT_TRUE(executor_->freeze(7, 1));
  ASSERT_TRUE(executor_->cancel(7, 1, 600'000));
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kCancelled);
  EXPECT_EQ(read_text(directory_.path("7/stdout.log")), "heard\n");
}

TEST_F(RealCgroups, AForkBombEnds) {
  ASSERT_TRUE(executor_->launch(shell(7, fork_bomb())));
  EXPECT_TRUE(wait_until([&] { return read_text(directory_.path("links")).size() > 40; }));
  ASSERT_TRUE(executor_->cancel(7, 1, 0));
  const auto exit = listener_->wait_exit(7);
  EXPECT_EQ(exit.how, TaskEnd::kCancelled);
  EXPECT_EQ(exit.reason, "cancelled") << "nothing was left";
}

TEST_F(RealCgroups, AKilledSupervisorsCgroupIsEmptiedAndRemoved) {
  ASSERT_TRUE(executor_->launch(shell(7, "echo $PPID > supervisor; exec sleep 1000")));
  ::kill(wait_for_pid(directory_.path("supervisor")), SIGKILL);
  EXPECT_EQ(listener_->wait_exit(7).how, TaskEnd::kLost);
  EXPECT_FALSE(fs::exists(group_ / "task-7.1"));
}

}  // namespace
}  // namespace tierpilot
