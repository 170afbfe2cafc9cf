// What becomes of tasks whose GPU, MPS server or neighbour fails.
#include <signal.h>

#include <vector>

#include "tests/system/training/gpu_share_scene.h"

namespace tierpilot::test {
namespace {

class GpuShareFaults : public GpuShare {
 protected:
  void go_on_without_server(const std::vector<uint64_t>& ids) {
    for (const auto id : ids)  // it is seen on the GPU
      ASSERT_TRUE(eventually([&] { return shown(id)["unit_share"]["used_milli"].is_number(); }))
          << shown(id).dump(2);
    int server = 0;
    ASSERT_TRUE(eventually([&] { return bool(std::ifstream(pipes() / "server") >> server); }));
    ASSERT_EQ(::kill(server, SIGKILL), 0);
    for (const auto id : ids)
      EXPECT_TRUE(eventually([&] { return shown(id)["attempt"].get<int>() > 1; }))
          << shown(id).dump(2) << cluster_->logs();
    tell("gate", "");
    for (const auto id : ids) EXPECT_TRUE(is(id, "succeeded")) << cluster_->logs();
  }
};

TEST_F(GpuShareFaults, AFaultOfTheServerIsNotItsNeighbours) {
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

TEST_F(GpuShareFaults, AServerThatIsKilledIsNobodysFault) {
  start("always");
  if (!cluster_) return;
  const std::vector<uint64_t> ids{submit("300", "first"), submit("300", "second")};
  go_on_without_server(ids);
}

TEST_F(GpuShareFaults, NorOfOneThatIsAlone) {
  start("always");
  if (!cluster_) return;
  go_on_without_server({submit("300", "alone")});
}

TEST_F(GpuShareFaults, WhoIsEndedByItsTimeLimitEndsThoughItTakesTheServerAlong) {
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

TEST_F(GpuShareFaults, WhoNoticesALostGpuFirstGoesOnElsewhereToo) {
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

TEST_F(GpuShareFaults, WhoFailsAloneHasItselfToBlame) {
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

TEST_F(GpuShareFaults, TheControlDaemonIsStartedAgainAndOneThatHangsTakesNoWork) {
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

TEST_F(GpuShareFaults, WhoWasOnALostGpuWaitsForIt) {
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
