// What the executor tells reaches the table of tasks, whatever the node has run out of.
#include "daemon/agent/tasks/exec_runner.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "fake_machine.h"
#include "no_more_threads.h"
#include "task_table_fixture.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {
namespace fs = std::filesystem;

constexpr int64_t kPatienceMs = 30'000;

class ExecRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "the fast tier must be on a tmpfs";
    // Before there are threads.
    auto started = Executor::start({.task_root = scratch_.path() + "/tasks"});
    ASSERT_TRUE(started) << started.error().message;
    executor_ = std::move(*started);
    const int64_t now_ns = system_clock().boot_ns();
    ASSERT_TRUE(executor_->extend_lease(now_ns + 60'000'000'000, now_ns));
    PoolOptions options;
    options.fast_dir = fast_ = "/dev/shm/tierpilot-runner-" + std::to_string(::getpid());
    options.fast_budget_bytes = options.slow_budget_bytes = 1 << 20;
    options.slow_dir = scratch_.path() + "/slow";
    auto opened = Pool::open(
        options, nullptr, [this](auto work) { loop_.post(std::move(work)); },
        [](const ReplicaChange&) {});
    ASSERT_TRUE(opened) << opened.error().message;
    pool_ = std::move(*opened);
    make_runner();
  }
  void TearDown() override {
    table_.reset();
    runner_.reset();
    checkpoints_.reset();
    pool_.reset();
    if (!fast_.empty()) fs::remove_all(fast_);
  }

  void make_runner() {
    const auto tier = parse_swap_tier("dir:" + scratch_.path() + "=8MiB");
    ASSERT_TRUE(tier) << tier.error().message;
    swap_room_ = std::make_unique<SwapRoom>(std::vector{*tier}, "n1");
    fs::create_directories(swap_folder());
    dirs_ = std::make_unique<TaskDirs>(*TaskDirs::open(scratch_.path(), {}));
    shares_ = std::make_unique<CpuShares>(loop_, *executor_);
    gpus_ = std::make_unique<GpuShares>(std::vector<GpuShares::Unit>{}, loop_, *executor_,
                                        system_clock(),
                                        GpuShares::Hooks{.end = [](auto, const auto&) {},
                                                         .unhealthy = [](auto, auto) {},
                                                         .ask = [](const auto&) { return 0; },
                                                         .idle = [](const auto&, bool) {}});
    auto environment = machine_.environment();
    paging_ =
        std::make_unique<Paging>(paging_config_,
                                 PagingEnvironment{environment.sysroot, pacer_, environment.kernel,
                                                   environment.make_trackers},
                                 TierSet{});
    checkpoints_ = std::make_unique<Checkpoints>(
        *pool_, channels_, system_clock(), [](auto, const auto&, const auto&) {},
        [](const auto&) {});
    runner_ = std::make_unique<ExecRunner>(
        ExecRunner::Options{"n1", 2000, scratch_.path() + "/tasks"}, *executor_, *dirs_, users_,
        *paging_, channels_, *checkpoints_, *shares_, *gpus_, *swap_room_, nullptr);
    table_ = std::make_unique<TaskTable>(
        NodeLimits{.cpus = {0}, .units = 4, .memory_bytes = 1 << 30, .swap_room_bytes = 8 << 20},
        data_, *runner_, system_clock(),
        [this](EventBody body) { reported_.push_back(std::move(body)); });
    table_->lease_granted(INT64_MAX);
  }

  void start(AttemptId attempt, const std::string& script) {
    Assignment work;
    work.attempt = attempt;
    work.argv = {"/bin/sh", "-c", script};
    work.swap_room_bytes = 1 << 20;
    const auto status = table_->start(work);
    ASSERT_TRUE(status) << status.error().message;
  }
  bool ended(AttemptId attempt) const {
    for (const auto& body : reported_)
      if (const auto* exit = std::get_if<ExitedEvent>(&body); exit && exit->attempt == attempt)
        return true;
    return false;
  }
  // Delivers what there is until then, as the daemon does when the executor has something to tell.
  bool deliver_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (!done() && std::chrono::steady_clock::now() < end) {
      pollfd ready{executor_->event_fd(), POLLIN, 0};
      ::poll(&ready, 1, 20);
      try {
        runner_->deliver(*table_);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "the loop would log: " << error.what();
      }
    }
    return done();
  }
  UniqueFd connect(const fs::path& path) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    loop_.after_ms(20).wait(loop_.wait_scope());
    return fd;
  }
  fs::path swap_folder() const { return scratch_.path() + "/tierpilot-n1"; }

  ScratchDirectory scratch_;
  fs::path fast_;
  std::unique_ptr<Executor> executor_;
  EventLoop loop_;
  FakeMachine machine_;
  SystemPacer pacer_;
  PagingConfig paging_config_;
  FakePool data_;
  std::unique_ptr<Pool> pool_;
  TaskUsers users_{TaskUsersConfig{}, [](auto) {}};
  JobChannels channels_{loop_, system_clock()};
  std::unique_ptr<TaskDirs> dirs_;
  std::unique_ptr<CpuShares> shares_;
  std::unique_ptr<GpuShares> gpus_;
  std::unique_ptr<Paging> paging_;
  std::unique_ptr<SwapRoom> swap_room_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<ExecRunner> runner_;
  std::vector<EventBody> reported_;
  std::unique_ptr<TaskTable> table_;
};

TEST_F(ExecRunnerTest, EndsAreToldWhereNoThreadIsToBeHad) {
  const NoMoreThreads full;
  start({1, 1}, "true");
  start({2, 1}, "true");
  EXPECT_TRUE(deliver_until([&] { return ended({1, 1}) && ended({2, 1}); }));
  EXPECT_EQ(swap_room_->given_bytes(), 0u);
}

TEST_F(ExecRunnerTest, WhatOneEndMeetsTakesNeitherItNorAnotherOneAlong) {
  channels_.cpu_ns = [](AttemptId) -> uint64_t { throw std::runtime_error("no CPU time known"); };
  start({1, 1}, "until test -e go; do sleep 0.02; done");
  start({2, 1}, "until test -e ../1-1/go; do sleep 0.02; done");
  const auto folder = dirs_->path_of({1, 1});
  // Read at its end.
  const auto job = connect(folder / JobChannels::kSocketName);
  const std::string line = "{\"v\":1,\"type\":\"progress\",\"iteration\":1}\n";
  ASSERT_EQ(::send(job.get(), line.data(), line.size(), 0), static_cast<ssize_t>(line.size()));
  std::ofstream(folder / "go");
  EXPECT_TRUE(deliver_until([&] { return ended({1, 1}) && ended({2, 1}); }));
  EXPECT_EQ(swap_room_->given_bytes(), 0u);
}

}  // namespace
}  // namespace tierpilot::agent
