// A GPU that reports Xid errors, and is lost and found, under real gangs: the driver's library is
// one that does as it is told.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/system/gpu_scene.h"

namespace tierpilot::test {
namespace {

class UnitFaults : public GpuScene {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    begin_driver("GPU-good\nGPU-bad\n");
    cluster_ = std::make_unique<Cluster>(ClusterOptions{.nodes = 1, .units = 2});
  }
  Json shown(uint64_t gang) {
    const auto task = cluster_->client().show(gang);
    EXPECT_TRUE(task) << task.error().message;
    return task ? *task : Json();
  }
  Json rank(uint64_t gang) { return shown(gang)["ranks"][0]; }
  // One rank on a GPU, until the gate opens.
  uint64_t submit() {
    const auto gate = cluster_->folder() / "gate";
    const auto made =
        json({"task", "submit", "--ranks", "1", "--engine", "gpu", "--max-restarts", "0", "--",
              "sh", "-c", fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate.string())});
    return made["tasks"][0]["id"].get<uint64_t>();
  }
  bool runs_on(uint64_t gang, const std::string& gpu) {
    const auto now = rank(gang);
    return now["state"] == "running" && now["gpus"] == Json::array({gpu});
  }
};

TEST_F(UnitFaults, AnXidMovesTheGangAndALostDeviceIsOutUntilItIsBack) {
  // One of the two is drained, so that the gang begins on the other.
  const auto good = fmt::format("{}/gpu/GPU-good", Cluster::node_name(0));
  json({"unit", "drain", good});
  const auto id = submit();
  ASSERT_TRUE(eventually([&] { return runs_on(id, "GPU-bad"); })) << rank(id).dump(2);
  json({"unit", "resume", good});

  tell("xids", "GPU-bad 13\n");  // the application's own: nothing happens
  tell("xids", "GPU-bad 94\n");
  ASSERT_TRUE(eventually([&] { return runs_on(id, "GPU-good"); }))
      << rank(id).dump(2) << cluster_->logs();
  const auto bad = unit("GPU-bad");
  EXPECT_EQ(bad["failures"], 1) << bad.dump(2);
  EXPECT_EQ(bad["state"], "up");
  EXPECT_EQ(unit("GPU-good")["failures"], 0);
  EXPECT_EQ(shown(id)["restarts"], 0);

  tell("lost", "GPU-good\n");
  ASSERT_TRUE(eventually([&] { return unit("GPU-good")["state"] == "unhealthy"; }));
  EXPECT_NE(unit("GPU-good")["reason"].get<std::string>().find("device lost"), std::string::npos);
  ASSERT_TRUE(eventually([&] { return runs_on(id, "GPU-bad"); })) << rank(id).dump(2);
  std::filesystem::remove(driver_->path() / "lost");
  ASSERT_TRUE(eventually([&] { return unit("GPU-good")["state"] == "up"; }));

  std::ofstream(cluster_->folder() / "gate") << "open";
  const auto task = cluster_->client().wait(id);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  const auto events = json({"node", "show", Cluster::node_name(0)}).dump();
  EXPECT_NE(events.find("Xid 94"), std::string::npos) << events;
  EXPECT_EQ(events.find("Xid 13"), std::string::npos) << events;
}

TEST_F(UnitFaults, AUnitTellsWhatItsGpuDoesAsFarAsTheDriverDoes) {
  tell("temperatures", "GPU-good 61\n");
  ASSERT_TRUE(eventually([&] { return unit("GPU-good")["temperature_c"] == 61; }))
      << unit("GPU-good").dump(2);
  EXPECT_EQ(unit("GPU-good")["memory_bytes"], 1ull << 30);
  EXPECT_EQ(unit("GPU-good")["busy_percent"], 0);
  EXPECT_TRUE(unit("GPU-bad")["temperature_c"].is_null()) << unit("GPU-bad").dump(2);
  const auto core = json({"unit", "show", fmt::format("{}/cpu/0", Cluster::node_name(0))});
  EXPECT_TRUE(core["unit"]["memory_bytes"].is_null()) << core.dump(2);

  tell("lost", "GPU-good\n");
  EXPECT_TRUE(eventually([&] { return unit("GPU-good")["temperature_c"].is_null(); }));
  std::filesystem::remove(driver_->path() / "lost");
  EXPECT_TRUE(eventually([&] { return unit("GPU-good")["temperature_c"] == 61; }));
}

// A command that finds a unit sick while its file is there.
class HealthCommands : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    folder_ = std::make_unique<TempFolder>(std::filesystem::temp_directory_path());
    const auto script = folder_->path() / "check";
    std::ofstream(script) << "#!/bin/sh\n"
                          << "echo \"CPUs $TIERPILOT_CPUS\"\n"
                          << "[ ! -e " << folder_->path().native() << "/${TIERPILOT_UNIT##*/} ]\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    cluster_ = std::make_unique<Cluster>(ClusterOptions{
        .nodes = 1,
        .units = 2,
        .node_more = fmt::format("[health]\ncpu = [\"{}\"]\nperiod_s = 1\n", script.native())});
  }
  Json shown(const Argv& line) { return tierctl_json(cluster_->address(), line); }
  Json unit(int number) {
    const auto listed = shown({"unit", "list"});
    for (const auto& unit : listed["units"])
      if (unit["id"] == fmt::format("{}/cpu/{}", Cluster::node_name(0), number)) return unit;
    return {};
  }
  Json cpu_units(uint64_t gang) {
    const auto task = cluster_->client().show(gang);
    return task && (*task)["ranks"][0]["state"] == "running" ? (*task)["ranks"][0]["cpu_units"]
                                                             : Json();
  }

  std::unique_ptr<TempFolder> folder_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(HealthCommands, AGangMovesAwayFromAUnitThatIsFoundSick) {
  const auto gate = cluster_->folder() / "gate";
  const auto made =
      shown({"task", "submit", "--ranks", "1", "--max-restarts", "0", "--", "sh", "-c",
             fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate.native())});
  const auto id = made["tasks"][0]["id"].get<uint64_t>();
  ASSERT_TRUE(eventually([&] { return cpu_units(id).size() == 1; })) << cluster_->logs();
  const int sick = cpu_units(id)[0].get<int>();
  std::ofstream(folder_->path() / std::to_string(sick)) << "sick";
  ASSERT_TRUE(eventually([&] { return unit(sick)["state"] == "unhealthy"; })) << unit(sick).dump(2);
  EXPECT_NE(unit(sick)["reason"].get<std::string>().find("health command ended with 1: CPUs "),
            std::string::npos)
      << unit(sick).dump(2);
  EXPECT_EQ(unit(sick)["failures"], 1);
  EXPECT_EQ(unit(1 - sick)["state"], "up");
  ASSERT_TRUE(eventually([&] { return cpu_units(id) == Json::array({1 - sick}); }))
      << cluster_->logs();
  std::filesystem::remove(folder_->path() / std::to_string(sick));
  ASSERT_TRUE(eventually([&] { return unit(sick)["state"] == "up"; }));
  EXPECT_EQ(unit(sick)["failures"], 1) << "what was, is not forgotten";
  std::ofstream(gate) << "open";
  const auto task = cluster_->client().wait(id);
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  EXPECT_EQ((*task)["restarts"], 0);
}

// The driver is given ten seconds.
TEST_F(UnitFaults, ADriverThatAnswersLateIsUsedOnceTheServiceBeginsAnew) {
  cluster_.reset();
  ::setenv("NOTIFY_SOCKET", "@nobody", 1);
  tell("mute", "");
  cluster_ = std::make_unique<Cluster>(ClusterOptions{.nodes = 1, .units = 2});
  ::unsetenv("NOTIFY_SOCKET");
  const auto gate = cluster_->folder() / "gate";
  const auto made = json({"task", "submit", "--", "sh", "-c",
                          fmt::format("while [ ! -e {} ]; do sleep 0.05; done", gate.string())});
  const auto id = made["tasks"][0]["id"].get<uint64_t>();
  ASSERT_TRUE(eventually([&] { return shown(id)["state"] == "running"; })) << shown(id).dump(2);
  EXPECT_EQ(json({"unit", "list"}).dump().find("GPU-good"), std::string::npos);
  std::filesystem::remove(driver_->path() / "mute");
  ASSERT_TRUE(eventually([&] {
    return cluster_->logs().find("once no task runs, the daemon begins anew") != std::string::npos;
  })) << cluster_->logs();
  EXPECT_EQ(shown(id)["state"], "running");
  std::ofstream(gate) << "";
  EXPECT_EQ(WEXITSTATUS(cluster_->node(0).wait().value_or(0)), 75) << cluster_->logs();
  EXPECT_EQ(shown(id)["state"], "succeeded");
  cluster_->start_node(0);
  EXPECT_TRUE(eventually([&] {
    return json({"unit", "list"}).dump().find("GPU-good") != std::string::npos;
  })) << cluster_->logs();
}

}  // namespace
}  // namespace tierpilot::test
