// A backup of a running coordinator, and a cluster that goes on from it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"
#include "tests/system/journal.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;

// It has everybody's environments.
void expect_for_its_owner_alone(const fs::path& state_dir) {
  std::vector<fs::path> all{state_dir};
  for (const auto& entry : fs::recursive_directory_iterator(state_dir)) all.push_back(entry.path());
  for (const auto& path : all)
    EXPECT_EQ(fs::status(path).permissions() & fs::perms(077), fs::perms::none) << path;
}

class BackupTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
};

TEST_F(BackupTest, ARestoredClusterGoesOnAndRepeatsNothing) {
  Cluster cluster({.nodes = 2, .units = 2, .lease_ms = 3'000});
  auto& client = cluster.client();
  const Journal journal(cluster.folder());
  const auto gate = cluster.folder() / "gate";
  const auto until_open = fmt::format("while [ ! -e {} ]; do sleep 0.1; done", gate.string());
  const auto ended = client.submit({journal.task("true")});
  ASSERT_TRUE(ended && client.wait(ended->tasks[0]));
  // Three of four units are taken for as long as the gate is shut; of the last, one runs at a time.
  std::vector<uint64_t> known;
  for (int i = 0; i < 6; ++i)
    known.push_back(client.submit({journal.task(until_open)})->tasks.at(0));
  ASSERT_TRUE(eventually([&] { return journal.read().runs.size() == 5; }));

  const auto file = cluster.folder() / "backup";
  const auto made = tierctl_at(cluster.address(), {"backup", file.string()});
  ASSERT_EQ(made.code, 0) << made.err;
  ASSERT_TRUE(fs::exists(file));
  expect_for_its_owner_alone(cluster.state_dir());
  std::set<uint64_t> lost;
  for (int i = 0; i < 3; ++i) lost.insert(client.submit({journal.task("true")})->tasks.at(0));

  cluster.coordinator().kill_now();
  fs::rename(cluster.state_dir(), cluster.folder() / "lost");
  const auto restored =
      run_command({program("TIERPILOT_TEST_COORDINATOR"), "--config",
                   (cluster.folder() / "coordinator.toml").string(), "--restore", file.string()});
  ASSERT_EQ(restored.code, 0) << restored.err;
  cluster.start_coordinator();
  expect_for_its_owner_alone(cluster.state_dir());
  const auto fresh = client.submit({journal.task("true")});
  ASSERT_TRUE(fresh) << fresh.error().message;
  EXPECT_GT(fresh->tasks.at(0), *lost.rbegin());
  std::ofstream(gate) << "open";
  known.push_back(fresh->tasks.at(0));
  for (const uint64_t id : known) {
    const auto task = client.wait(id);
    ASSERT_TRUE(task) << task.error().message;
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2);
  }
  const auto record = journal.read();
  EXPECT_TRUE(record.overlaps.empty());
  for (const auto& [key, runs] : record.runs) {
    std::set<int> attempts;
    for (const auto& run : runs) EXPECT_TRUE(attempts.insert(run.attempt).second) << "task " << key;
  }
}

}  // namespace
}  // namespace tierpilot::test
