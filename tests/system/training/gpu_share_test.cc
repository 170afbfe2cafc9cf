// Tasks that share a GPU of a real daemon: the driver's library and the control program of MPS are
// such as do what they are told, and a task computes on the GPU as much as it computes on its CPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

// Says that it is a client, with so much memory, and computes until the gate opens or a file of its
// name tells it to fail.
constexpr const char* kClient =
    "echo $CUDA_VISIBLE_DEVICES $$ $1 >> $FAKE_NVML/clients; env | grep -E "
    "'CUDA|TIERPILOT_(GPU|SWAP)'; "
    "while [ ! -e $FAKE_NVML/gate ]; do [ -e $FAKE_NVML/fail-$2 ] && exit 3; done; exit 0";

// Computes for a small part of the time, and waits for its host otherwise.
constexpr const char* kLightClient =
    "echo $CUDA_VISIBLE_DEVICES $$ $1 >> $FAKE_NVML/clients; "
    "while [ ! -e $FAKE_NVML/gate ]; do sleep 0.1; done; exit 0";

// Of a process that computes whenever it is let: time that it ran or waited for a CPU, which other
// work on the machine does not change.
int64_t wanted_ns(pid_t process) {
  int64_t ran_ns = 0, waited_ns = 0;
  std::ifstream(fmt::format("/proc/{}/schedstat", process)) >> ran_ns >> waited_ns;
  return ran_ns + waited_ns;
}

bool stands(pid_t process) {
  std::string line;
  std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), line);
  const auto name = line.rfind(')');
  return name != line.npos && line.substr(name, 4).find('T') != line.npos;
}

class GpuShare : public testing::Test {
 protected:
  void start(const std::string& mps, const std::string& kinds = {},
             const std::string& control = fmt::format("{}/tests/fake_mps/nvidia-cuda-mps-control",
                                                      std::getenv("TIERPILOT_TEST_SOURCE"))) {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    driver_ = std::make_unique<TempFolder>(std::filesystem::temp_directory_path());
    tell("gpus", "GPU-a\nGPU-b\n");
    tell("kinds", kinds);
    ::setenv("FAKE_NVML", driver_->path().c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", program("TIERPILOT_TEST_FAKE_NVML").c_str(), 1);
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 1,
                       .units = 2,
                       .coordinator_more = "[sharing]\npolicy = \"best-fit\"\nperiod_s = 1\n",
                       .node_more = fmt::format("[sharing]\ngpus = [\"GPU-a\"]\nmps = \"{}\"\n"
                                                "mps_control = \"{}\"\n"
                                                "[swap]\ntiers = [\"memory=64MiB\"]\n",
                                                mps, control)});
  }
  void tell(const std::string& file, const std::string& text) {
    std::ofstream(driver_->path() / file, std::ios::app) << text;
  }
  Json json(const Argv& line) {
    Argv all{"-j"};
    all.insert(all.end(), line.begin(), line.end());
    const auto answer = tierctl_at(cluster_->address(), all);
    EXPECT_EQ(answer.code, 0) << answer.err;
    return Json::parse(answer.out, nullptr, false);
  }
  uint64_t submit(const std::string& share, const std::string& name, uint64_t bytes = 1 << 20,
                  const std::string& swap_room = "0", const char* program = kClient) {
    const auto made =
        json({"task", "submit", "--share", share, "--engine", "gpu", "--name", name, "--swap-room",
              swap_room, "--env", "FAKE_NVML=" + driver_->path().string(), "--", "sh", "-c",
              program, "sh", std::to_string(bytes), name});
    if (made.is_object()) return made["tasks"][0]["id"].get<uint64_t>();
    throw std::runtime_error("the task was not taken");
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  bool runs(uint64_t id) { return shown(id)["state"] == "running"; }
  bool is(uint64_t id, const std::string& state) {
    return eventually([&] { return shown(id)["state"] == state; });
  }
  std::string said(uint64_t id) {
    std::string out;
    eventually([&] {
      out = tierctl_at(cluster_->address(), {"task", "logs", std::to_string(id)}).out;
      return out.find("CUDA_VISIBLE_DEVICES") != out.npos;
    });
    return out;
  }
  // Of the client with so much memory.
  pid_t client(uint64_t bytes) {
    pid_t found = 0;
    eventually([&] {
      std::ifstream clients(driver_->path() / "clients");
      std::string gpu;
      pid_t process = 0;
      for (uint64_t has = 0; clients >> gpu >> process >> has;)
        if (has == bytes) found = process;
      return found != 0;
    });
    return found;
  }
  Json unit(const std::string& gpu) {
    const auto listed = json({"unit", "list"});
    for (const auto& unit : listed["units"])
      if (unit["id"] == fmt::format("{}/gpu/{}", Cluster::node_name(0), gpu)) return unit;
    ADD_FAILURE() << listed.dump(2);
    return {};
  }
  std::filesystem::path pipes() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cluster_->folder()))
      if (entry.path().filename() == "pipe") return entry.path();
    return {};
  }

  std::unique_ptr<TempFolder> driver_;
  std::unique_ptr<Cluster> cluster_;
};

// Who takes the GPU away then costs it nothing.
TEST_F(GpuShare, TasksOfADrainedGpuAreAskedToSave) {
  start("never", "GPU-a H200 9 0 16896 1980 3201 6016 150754820096\n");
  if (!cluster_) return;
  const auto program = fmt::format(
      "PYTHONPATH={}/python exec python3 -u -c 'import tierpilot, time\n"
      "job = tierpilot.job()\n"
      "job.report(1)\n"
      "print(\"begun\")\n"
      "while not job.should_checkpoint(): time.sleep(0.05)\n"
      "print(\"asked to save\")\n"
      "time.sleep(600)'",
      std::getenv("TIERPILOT_TEST_SOURCE"));
  const auto id = submit("500", "saves", 1 << 20, "0", program.c_str());
  const auto says = [&](const char* words) {
    return eventually([&] {
      const auto out = tierctl_at(cluster_->address(), {"task", "logs", std::to_string(id)}).out;
      return out.find(words) != out.npos;
    });
  };
  ASSERT_TRUE(says("begun")) << shown(id).dump(2);
  json({"unit", "drain", fmt::format("{}/gpu/GPU-a", Cluster::node_name(0))});
  EXPECT_TRUE(says("asked to save")) << shown(id).dump(2);
  EXPECT_TRUE(runs(id)) << "it keeps its share";
}

TEST_F(GpuShare, TwoTasksHavePartsOfOneGpuAndSeeItThroughMps) {
  start("always", "GPU-a H200 9 0 16896 1980 3201 6016 150754820096\n");
  if (!cluster_) return;
  const auto a = submit("300:2GiB", "a"), b = submit("500", "b");
  ASSERT_TRUE(eventually([&] { return runs(a) && runs(b); })) << shown(a).dump(2);
  const auto seen = said(a);
  EXPECT_NE(seen.find("CUDA_VISIBLE_DEVICES=GPU-a\n"), seen.npos) << seen;
  EXPECT_NE(seen.find("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=31\n"), seen.npos) << seen;
  EXPECT_NE(seen.find("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M\n"), seen.npos) << seen;
  EXPECT_NE(seen.find("CUDA_MPS_PIPE_DIRECTORY="), seen.npos) << seen;
  EXPECT_NE(said(b).find("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50\n"), std::string::npos);
  const auto shared = unit("GPU-a");
  EXPECT_EQ(shared["shared"], true);
  EXPECT_EQ(shared["shared_by"].size(), 2u) << shared.dump(2);
  EXPECT_EQ(shown(a)["unit_share"]["gpu"], "GPU-a");
  EXPECT_TRUE(eventually([&] { return shown(a)["unit_share"]["used_milli"].is_number(); }))
      << shown(a)["unit_share"].dump(2);
  // A gang may have the other one only.
  const auto gang = tierctl_at(cluster_->address(),
                               {"task", "submit", "--ranks", "2", "--engine", "gpu", "--", "true"});
  EXPECT_NE(gang.err.find("could run 1 of its 2 ranks"), std::string::npos) << gang.err;
  tell("gate", "");
  EXPECT_TRUE(is(a, "succeeded") && is(b, "succeeded"));
}

TEST_F(GpuShare, TheMemoryOfItsShareIsTheBudgetOfATaskWithRoomForSwapping) {
  start("never");
  if (!cluster_) return;
  const auto swaps = submit("300:2GiB", "a", 1 << 20, "48MiB");
  ASSERT_TRUE(eventually([&] { return runs(swaps); })) << shown(swaps).dump(2);
  const auto plain = submit("300:2GiB", "b"), waits = submit("300:2GiB", "c", 1 << 20, "48MiB");
  ASSERT_TRUE(eventually([&] { return runs(plain); })) << shown(plain).dump(2);
  const auto seen = said(swaps);
  EXPECT_NE(seen.find("TIERPILOT_SWAP_BUDGET=2147483648\n"), seen.npos) << seen;
  EXPECT_NE(seen.find("TIERPILOT_SWAP_TIERS=memory=50331648\n"), seen.npos) << seen;
  EXPECT_EQ(said(plain).find("TIERPILOT_SWAP"), std::string::npos);
  EXPECT_NE(shown(waits)["reason"].dump().find("room for swapping"), std::string::npos);
  tell("gate", "");
  for (const auto id : {swaps, plain, waits}) EXPECT_TRUE(is(id, "succeeded"));
}

TEST_F(GpuShare, AFaultOfTheServerIsNotItsNeighbours) {
  start("always");
  if (!cluster_) return;
  const auto bad = submit("300", "bad"), good = submit("300", "good");
  ASSERT_TRUE(eventually([&] { return runs(bad) && runs(good); }));
  const auto before = shown(good)["attempt"].get<int>();
  std::ofstream(pipes() / "status") << "FAULT\n";
  EXPECT_TRUE(eventually([&] { return shown(good)["attempt"].get<int>() > before; }))
      << shown(good).dump(2) << cluster_->logs();
  std::filesystem::remove(pipes() / "status");
  ASSERT_TRUE(eventually([&] { return runs(good); }));
  tell("gate", "");
  EXPECT_TRUE(is(good, "succeeded") && is(bad, "succeeded")) << shown(good).dump(2);
}

TEST_F(GpuShare, AServerThatIsKilledIsNobodysFault) {
  start("always");
  if (!cluster_) return;
  const auto first = submit("300", "first", 1 << 20), second = submit("300", "second", 2 << 20);
  ASSERT_TRUE(client(1 << 20) && client(2 << 20));
  int server = 0;
  ASSERT_TRUE(eventually([&] { return bool(std::ifstream(pipes() / "server") >> server); }));
  for (const auto id : {first, second})  // it is seen on the GPU
    ASSERT_TRUE(eventually([&] { return shown(id)["unit_share"]["used_milli"].is_number(); }))
        << shown(id).dump(2);
  ASSERT_EQ(::kill(server, SIGKILL), 0);
  for (const auto id : {first, second})
    EXPECT_TRUE(eventually([&] { return shown(id)["attempt"].get<int>() > 1; }))
        << shown(id).dump(2) << cluster_->logs();
  tell("gate", "");
  EXPECT_TRUE(is(first, "succeeded") && is(second, "succeeded")) << cluster_->logs();
}

TEST_F(GpuShare, WhoIsEndedByItsTimeLimitEndsThoughItTakesTheServerAlong) {
  start("always");
  if (!cluster_) return;
  const auto good = submit("300", "good");
  ASSERT_TRUE(eventually([&] { return runs(good); }));
  const auto made = json({"task", "submit", "--share", "300", "--engine", "gpu", "--time-limit",
                          "1s", "--", "sh", "-c",
                          "trap 'echo Server 1: fatal fault >> $CUDA_MPS_LOG_DIRECTORY/server.log; "
                          "exit 1' TERM; while :; do sleep 0.1; done"});
  const auto bad = made["tasks"][0]["id"].get<uint64_t>();
  EXPECT_TRUE(is(bad, "failed")) << shown(bad).dump(2);
  EXPECT_EQ(shown(bad)["attempt"], 1) << shown(bad).dump(2);
  EXPECT_TRUE(eventually([&] { return shown(good)["attempt"].get<int>() > 1; }));
  tell("gate", "");
  EXPECT_TRUE(is(good, "succeeded")) << shown(good).dump(2);
}

TEST_F(GpuShare, WhoNoticesALostGpuFirstGoesOnElsewhereToo) {
  start("never");
  if (!cluster_) return;
  const auto made = json({"task", "submit", "--share", "300", "--engine", "gpu", "--env",
                          "FAKE_NVML=" + driver_->path().string(), "--", "sh", "-c",
                          "[ $TIERPILOT_ATTEMPT = 1 ] || exit 0; echo CUDA_VISIBLE_DEVICES; "
                          "while [ ! -e $FAKE_NVML/lost ]; do sleep 0.01; done; exit 1"});
  const auto id = made["tasks"][0]["id"].get<uint64_t>();
  said(id);
  tell("lost", "GPU-a\n");
  EXPECT_TRUE(eventually([&] { return shown(id)["state"] == "queued"; })) << shown(id).dump(2);
  std::filesystem::remove(driver_->path() / "lost");
  EXPECT_TRUE(is(id, "succeeded")) << shown(id).dump(2) << cluster_->logs();
}

TEST_F(GpuShare, WhoFailsAloneHasItselfToBlame) {
  start("always");
  if (!cluster_) return;
  const auto bad = submit("300", "bad"), good = submit("300", "good");
  ASSERT_TRUE(eventually([&] { return runs(bad) && runs(good); }));
  said(bad);
  tell("fail-bad", "");
  EXPECT_TRUE(is(bad, "failed")) << shown(bad).dump(2);
  EXPECT_TRUE(runs(good));
  tell("gate", "");
  EXPECT_TRUE(is(good, "succeeded")) << shown(good).dump(2) << cluster_->logs();
}

TEST_F(GpuShare, TheControlDaemonIsStartedAgainAndOneThatHangsTakesNoWork) {
  start("always");
  if (!cluster_) return;
  const auto pid_of = [&] {
    int pid = 0;
    std::ifstream(pipes() / "nvidia-cuda-mps-control.pid") >> pid;
    return pid;
  };
  ASSERT_TRUE(eventually([&] { return !pipes().empty() && pid_of() > 0; })) << cluster_->logs();
  const int first = pid_of();
  ASSERT_TRUE(kill_told(first));
  EXPECT_TRUE(eventually([&] { return pid_of() > 0 && pid_of() != first; })) << cluster_->logs();
  std::ofstream(pipes() / "hang") << "";
  EXPECT_TRUE(eventually([&] { return unit("GPU-a")["state"] == "unhealthy"; }))
      << unit("GPU-a").dump(2);
  const auto waits = submit("300", "waits");
  EXPECT_FALSE(runs(waits));
  std::filesystem::remove(pipes() / "hang");
  EXPECT_TRUE(eventually([&] { return runs(waits); })) << unit("GPU-a").dump(2);
  tell("gate", "");
  EXPECT_TRUE(is(waits, "succeeded"));
}

TEST_F(GpuShare, WhereMpsDoesNotComeUpTurnsAreTaken) {
  start("auto", {}, "/bin/false");
  if (!cluster_) return;
  const auto task = submit("300", "task");
  ASSERT_TRUE(eventually([&] { return runs(task); })) << unit("GPU-a").dump(2);
  EXPECT_EQ(said(task).find("CUDA_MPS"), std::string::npos);
  EXPECT_NE(unit("GPU-a")["state"], "unhealthy");
  tell("gate", "");
  EXPECT_TRUE(is(task, "succeeded"));
}

TEST_F(GpuShare, WithoutMpsTurnsHoldTheShareAndMemoryEndsWhoTakesTooMuch) {
  start("never");
  if (!cluster_) return;
  const auto held = submit("300", "held");
  ASSERT_TRUE(eventually([&] { return runs(held); }));
  EXPECT_EQ(said(held).find("CUDA_MPS"), std::string::npos);
  // Over some seconds; a machine with other work gives it less, never more.
  std::this_thread::sleep_for(std::chrono::seconds(10));
  const auto used = shown(held)["unit_share"]["used_milli"];
  ASSERT_TRUE(used.is_number()) << shown(held)["unit_share"].dump(2);
  EXPECT_LE(used.get<double>(), 400) << "a thousand without the limiter";
  const auto greedy = submit("300:2GiB", "greedy", 3ull << 30);
  ASSERT_TRUE(is(greedy, "failed")) << shown(greedy).dump(2);
  EXPECT_EQ(shown(greedy)["exit"]["how"], "memory_limit") << shown(greedy).dump(2);
  tell("gate", "");
  EXPECT_TRUE(is(held, "succeeded"));
}

TEST_F(GpuShare, WithoutMpsTheyTakeTurnsAndEachHasItsShareOfItsSpeedAlone) {
  start("never");
  if (!cluster_) return;
  using namespace std::chrono;
  std::map<pid_t, double> speeds;
  const auto measure = [&](const std::vector<pid_t>& clients, seconds window, const auto& look) {
    std::map<pid_t, int64_t> before;
    for (const auto one : clients) before[one] = wanted_ns(one);
    const auto begin = steady_clock::now();
    while (steady_clock::now() < begin + window) {
      look();
      std::this_thread::sleep_for(milliseconds(1));
    }
    const auto took = duration<double, std::nano>(steady_clock::now() - begin).count();
    for (const auto one : clients)
      speeds[one] = static_cast<double>(wanted_ns(one) - before[one]) / took;
  };
  const auto alone = submit("1000", "alone");
  ASSERT_TRUE(eventually([&] { return runs(alone); })) << shown(alone).dump(2);
  const pid_t whole = client(1 << 20);
  int stood = 0;
  measure({whole}, seconds(3), [&] { stood += stands(whole); });
  EXPECT_EQ(stood, 0) << "all of it is its own";
  tell("fail-alone", "");
  ASSERT_TRUE(is(alone, "failed"));

  const auto a = submit("300", "a", 2 << 20), b = submit("600", "b", 3 << 20);
  const pid_t small = client(2 << 20), large = client(3 << 20);
  for (const auto one : {small, large}) ASSERT_TRUE(eventually([&] { return stands(one); })) << one;
  int looks = 0, together = 0;
  measure({small, large}, seconds(10), [&] {
    ++looks;
    together += !stands(small) && !stands(large) && !stands(small);
  });
  EXPECT_NEAR(speeds[small] / speeds[whole], 0.3, 0.05);
  EXPECT_NEAR(speeds[large] / speeds[whole], 0.6, 0.05);
  // Signals may be under way for longer where the machine has much else to do.
  EXPECT_LE(together, looks / 100) << looks << " looks";
  tell("gate", "");
  EXPECT_TRUE(is(a, "succeeded") && is(b, "succeeded"));
}

TEST_F(GpuShare, WithoutMpsWhoUsesNoMoreThanItsShareIsNotStopped) {
  start("never");
  if (!cluster_) return;
  const auto light = submit("300", "light", 2 << 20, "0", kLightClient);
  const pid_t process = client(2 << 20);
  // It takes exclusive turns until it is known what it uses.
  ASSERT_TRUE(eventually([&] { return stands(process); }));
  const auto heavy = submit("600", "heavy", 3 << 20);
  const pid_t other = client(3 << 20);
  ASSERT_TRUE(eventually([&] { return stands(other); }));
  const auto ran_for = [&](std::chrono::seconds window) {
    const auto end = std::chrono::steady_clock::now() + window;
    while (std::chrono::steady_clock::now() < end) {
      if (stands(process)) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  };
  EXPECT_TRUE(eventually([&] { return ran_for(std::chrono::seconds(5)); }));
  EXPECT_TRUE(eventually([&] { return stands(other); })) << "the other keeps to its share";
  tell("gate", "");
  EXPECT_TRUE(is(light, "succeeded") && is(heavy, "succeeded"));
}

TEST_F(GpuShare, WhoWasOnALostGpuWaitsForIt) {
  start("never");
  if (!cluster_) return;
  const auto id = submit("300", "a");
  ASSERT_TRUE(eventually([&] { return runs(id); }));
  tell("lost", "GPU-a\n");
  EXPECT_TRUE(eventually([&] { return shown(id)["state"] == "queued"; })) << shown(id).dump(2);
  std::filesystem::remove(driver_->path() / "lost");
  tell("gate", "");
  EXPECT_TRUE(is(id, "succeeded")) << shown(id).dump(2) << cluster_->logs();
}

}  // namespace
}  // namespace tierpilot::test
