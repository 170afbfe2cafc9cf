// What tasks have of a GPU that they share, by MPS and by turns.
#include <map>
#include <thread>

#include "tests/system/training/gpu_share_scene.h"

namespace tierpilot::test {
namespace {

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

// Where there is no MPS.
using GpuTurns = GpuShare;

TEST_F(GpuTurns, HoldTheShareAndMemoryEndsWhoTakesTooMuch) {
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

TEST_F(GpuTurns, EachHasItsShareOfItsSpeedAlone) {
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
  // Signals may be under way for longer where the machine has much else to do: in 2 % of the looks,
  // beside compilers. Without turns they would run beside each other in 18 % (0.3 of 0.6).
  EXPECT_LE(together, looks / 20) << looks << " looks";
  tell("gate", "");
  EXPECT_TRUE(is(a, "succeeded") && is(b, "succeeded"));
}

TEST_F(GpuTurns, WhoUsesNoMoreThanItsShareIsNotStopped) {
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

}  // namespace
}  // namespace tierpilot::test
