// The real daemon as a process of its own, against a coordinator inside the test.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fake_coordinator.h"

namespace tierpilot {

namespace fs = std::filesystem;
using testing_support::FakeCoordinator;
using testing_support::HeardEvent;

constexpr uint32_t kLeaseMs = 3000;

class NodeTest : public testing::Test {
 protected:
  NodeTest() {
    char name[] = "/dev/shm/tierpilot-node-XXXXXX";  // the fast tier must be on a tmpfs
    if (const char* made = ::mkdtemp(name)) root = made;
  }
  ~NodeTest() override {
    end(daemon, SIGKILL);
    end(other, SIGKILL);
    coordinator.reset();
    std::error_code ignored;
    if (!root.empty()) fs::remove_all(root, ignored);
  }

  void SetUp() override {
    if (root.empty()) GTEST_SKIP() << "no directory can be made in /dev/shm";
    coordinator = std::make_unique<FakeCoordinator>(root / "coordinator.sock", kLeaseMs);
    coordinator->listen();
    daemon = spawn("n1", "calibrate = false\npassive = false\n");
    ASSERT_TRUE(coordinator->run_until([&] { return coordinator->registrations.size() == 1; }));
  }

  pid_t spawn(const std::string& name, const std::string& probe) {
    const auto config = root / (name + ".toml");
    std::ofstream(config) << fmt::format(R"([node]
name = "{0}"
coordinator = "unix:{1}/coordinator.sock"
data_listen = "unix:{1}/{0}.sock"
cpus = [{2}]
units = 2
work_dir = "{1}/{0}"
cancel_grace_ms = 500
drain_s = {4}
[pool]
fast_dir = "{1}/{0}-fast"
fast_budget = "8MiB"
slow_dir = "{1}/{0}-slow"
slow_kind = "directory"
slow_budget = "32MiB"
[probe]
{3})",
                                         name, root.native(), first_cpu(), probe, drain_s);
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashed is not waited for
    ::execl(TIERPILOTD, "tierpilotd", "--config", config.c_str(), nullptr);
    ::_exit(127);
  }
  static void end(pid_t& child, int signal) {
    if (child <= 0) return;
    ::kill(child, signal);
    ::waitpid(child, nullptr, 0);
    child = -1;
  }

  static int first_cpu() {
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof set, &set);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set)) ++cpu;
    return cpu;
  }

  bool until_heard(const std::string& kind, AttemptId attempt) {
    return coordinator->run_until([&] { return coordinator->heard(kind, attempt) != nullptr; });
  }
  Status create(const std::string& name) {
    auto request = coordinator->node->createDatasetRequest();
    request.setName(name);
    request.initSource().setZeroBytes(coordinator->dataset_bytes);
    return coordinator->call(
        request.send().then([this](auto&& made) { coordinator->learn(made.getReplica()); }));
  }

  fs::path root;
  std::unique_ptr<FakeCoordinator> coordinator;
  pid_t daemon = -1, other = -1;
  int drain_s = 0;
};

}  // namespace tierpilot
