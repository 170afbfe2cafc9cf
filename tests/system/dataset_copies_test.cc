// Second copies of datasets: a lost node loses no data, and damaged copies are found and made anew.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;

class DatasetCopies : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(ClusterOptions{.nodes = 2, .lease_ms = 2'000});
    const auto added = tierctl({"-j", "dataset", "add", "d", "--random", "1MiB", "--replicas", "2",
                                "--node", Cluster::node_name(0)});
    ASSERT_EQ(added.code, 0) << added.err;
    ASSERT_TRUE(is_safe()) << "it is added once it is on both";
  }
  Outcome tierctl(Argv arguments) { return tierctl_at(cluster_->address(), std::move(arguments)); }
  Json shown() { return parse(tierctl({"-j", "dataset", "show", "d"}).out)["dataset"]; }
  bool is_safe() {
    auto dataset = shown();
    return dataset["safe"] == true && dataset["nodes_that_keep_it"] == 2;
  }
  bool becomes_safe() {
    return eventually([&] { return is_safe(); });
  }
  // Of the bytes, as a task reads them.
  std::string read_by_a_task() {
    auto task = shell_task("sha256sum < $TIERPILOT_DATASET_D");
    task.datasets = {{"d", false}};
    const auto submitted = cluster_->client().submit({task});
    if (!submitted) return submitted.error().message;
    const auto ended = cluster_->client().wait(submitted->tasks[0]);
    if (!ended || (*ended)["state"] != "succeeded")
      return ended ? ended->dump(2) : ended.error().message;
    return cluster_->client().log(submitted->tasks[0]).value_or("no log");
  }
  // What `verb` says of the copy on each node: its result, and the exit code.
  std::pair<std::map<std::string, std::string>, int> results_of(const std::string& verb) {
    const auto said = tierctl({"-j", "dataset", verb, "d"});
    std::map<std::string, std::string> results;
    const auto checked = parse(said.out);
    const auto copies = checked.value("copies", Json::array());
    for (const auto& copy : copies) results[copy["node"]] = copy["result"];
    return {results, said.code};
  }
  // The node and all it had.
  void lose(int node) {
    cluster_->node(node).kill_now();
    for (const char* tier : {"fast", "slow", "work"})
      fs::remove_all(cluster_->folder() / Cluster::node_name(node) / tier);
  }
  // One byte of the copy on the node's disk.
  void damage(int node) {
    for (const auto& file :
         fs::directory_iterator(cluster_->folder() / Cluster::node_name(node) / "slow")) {
      if (!file.path().filename().string().starts_with("d@")) continue;
      fs::permissions(file.path(), fs::perms::owner_write, fs::perm_options::add);
      std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekg(4711);
      const int was = bytes.get();
      bytes.seekp(4711);
      bytes.put(static_cast<char>(was ^ 1));
      ASSERT_TRUE(bytes.flush());
      return;
    }
    FAIL() << "no copy in the slow tier of " << Cluster::node_name(node);
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(DatasetCopies, ALostNodeLosesNoData) {
  const auto bytes = read_by_a_task();
  ASSERT_EQ(bytes.size(), 68u) << bytes;
  lose(0);
  ASSERT_TRUE(eventually([&] { return shown()["home"] == Cluster::node_name(1); }));
  EXPECT_EQ(read_by_a_task(), bytes);
  EXPECT_EQ(shown()["safe"], false);
  EXPECT_EQ(tierctl({"node", "remove", Cluster::node_name(0)}).code, 0) << "it is no home any more";
}

TEST_F(DatasetCopies, ANodeThatIsLostRightAfterAWriteTakesNothingAlong) {
  auto writer = shell_task("printf next > $TIERPILOT_DATASET_D");
  writer.datasets = {{"d", true}};
  writer.node = Cluster::node_name(0);
  const auto submitted = cluster_->client().submit({writer});
  ASSERT_TRUE(submitted);
  ASSERT_EQ((*cluster_->client().wait(submitted->tasks[0]))["state"], "succeeded");
  lose(0);
  EXPECT_EQ(shown()["version"], 2);
  EXPECT_EQ(read_by_a_task(),
            "c6c1c9a9c8543f1e4cd980064cf1625eeb61a90703b2464fff039f21682508b3  -\n");
}

TEST_F(DatasetCopies, WhereNoOtherNodeIsUpAWriteCountsWithoutACopy) {
  ASSERT_EQ(tierctl({"node", "drain", Cluster::node_name(1)}).code, 0);
  auto writer = shell_task("printf next > $TIERPILOT_DATASET_D");
  writer.datasets = {{"d", true}};
  const auto submitted = cluster_->client().submit({writer});
  ASSERT_TRUE(submitted);
  ASSERT_EQ((*cluster_->client().wait(submitted->tasks[0]))["state"], "succeeded");
  EXPECT_EQ(shown()["safe"], false);
  ASSERT_EQ(tierctl({"node", "uncordon", Cluster::node_name(1)}).code, 0);
  EXPECT_TRUE(becomes_safe());
}

TEST_F(DatasetCopies, ADamagedCopyIsFoundAndMadeAnew) {
  using Results = std::map<std::string, std::string>;
  const auto home = Cluster::node_name(0), other = Cluster::node_name(1);
  EXPECT_EQ(results_of("verify"), std::pair(Results({{home, "good"}, {other, "good"}}), 0));
  ASSERT_NO_FATAL_FAILURE(damage(0));
  EXPECT_EQ(results_of("repair"), std::pair(Results({{home, "restored"}, {other, "good"}}), 0));
  ASSERT_TRUE(becomes_safe());
  EXPECT_EQ(results_of("verify"), std::pair(Results({{home, "good"}, {other, "good"}}), 0));

  // Who only looks gives the damaged copy up, and a repair makes the one that is missing.
  ASSERT_NO_FATAL_FAILURE(damage(1));
  EXPECT_EQ(results_of("verify"), std::pair(Results({{home, "good"}, {other, "damaged"}}), 1));
  // On a busy machine that one may have been made by then.
  auto repaired = results_of("repair");
  repaired.first.emplace(other, "good");
  EXPECT_EQ(repaired, std::pair(Results({{home, "good"}, {other, "good"}}), 0));
  EXPECT_TRUE(becomes_safe());
  expect_json_error(tierctl({"-j", "dataset", "verify", "nothing"}), 3, "nothing");
}

}  // namespace
}  // namespace tierpilot::test
