// Tasks that ask for room for swapping, on a real daemon with a directory to swap to: it is never
// given twice, each has a folder of its own there, and nothing of that stays.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uid_t kDaemon = 64'002;
constexpr uid_t kFirst = 72'100, kLast = 72'103;
constexpr const char* kCapabilities = "-all,+setuid,+setgid,+chown,+kill,+sys_nice,+sys_ptrace";

// Says what it was given, leaves a file in its folder, and goes on until the gate is open.
constexpr const char* kTask = R"(
echo "budget $TIERPILOT_SWAP_BUDGET"
echo "tiers $TIERPILOT_SWAP_TIERS"
folder=${TIERPILOT_SWAP_TIERS#dir:}; folder=${folder%=*}
stat -c 'folder %u %a' "$folder"
echo something > "$folder/file" && echo written
until [ -e "$0" ]; do sleep 0.02; done
)";

constexpr const char* kTraining = R"(
import json, torch, tierpilot
torch.manual_seed(3)
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
swap = tierpilot.swap()
for _ in range(3):
    model.zero_grad()
    with swap:
        loss = model(torch.ones(512, 512)).square().sum()
    loss.backward()
said = swap.statistics()
print(json.dumps({"copies_out": said["copies_out"], "copies_in": said["copies_in"],
                  "tiers": swap.tiers()}))
)";

std::string on_a_disk() {
  return fs::exists("/var/tmp") ? "/var/tmp" : "/tmp";
}

class SwapRoom : public testing::Test {
 protected:
  SwapRoom() : slow_(on_a_disk()) {}
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
  void start(ClusterOptions options = {}) {
    options.nodes = 1;
    options.lease_ms = 4000;
    options.node_more += fmt::format("[swap]\ntiers = [\"dir:{}=64MiB\"]\n", slow_.path().native());
    cluster_ = std::make_unique<Cluster>(options);
    gate_ = cluster_->folder() / "gate";
  }
  Outcome submit(std::vector<std::string> options) {
    std::vector<std::string> line{"-j", "task", "submit"};
    line.insert(line.end(), options.begin(), options.end());
    for (const auto& word : {std::string("--"), std::string("/bin/sh"), std::string("-c"),
                             std::string(kTask), gate_.string()})
      line.push_back(word);
    return tierctl_at(cluster_->address(), line);
  }
  uint64_t accepted(std::vector<std::string> options) { return submitted_id(submit(options)); }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  bool runs(uint64_t id) { return shown(id)["state"] == "running"; }
  void open_gate() { std::ofstream(gate_) << "open"; }
  Json ended(uint64_t id) {
    const auto task = cluster_->client().wait(id);
    EXPECT_TRUE(task) << task.error().message;
    if (!task) return {};
    EXPECT_EQ((*task)["state"], "succeeded") << task->dump(2) << cluster_->logs();
    return shown(id);
  }
  std::string log(uint64_t id) {
    return tierctl_at(cluster_->address(), {"task", "logs", std::to_string(id)}).out;
  }
  bool has_said(uint64_t id, const std::string& words) {
    return eventually([&] { return log(id).find(words) != std::string::npos; });
  }
  fs::path folder_of(uint64_t id, int attempt = 1) const {
    return slow_.path() / "tierpilot-n1" / fmt::format("{}-{}", id, attempt);
  }
  Json node() { return (*cluster_->client().nodes())[0]; }
  // As the node has it on its page for Prometheus, too.
  double given_by_the_node() {
    const auto told = node();
    for (const auto& metric : told["status"]["metrics"])
      if (metric["name"] == "swap_room_given_bytes") return metric["value"].get<double>();
    return -1;
  }

  TempFolder slow_;
  std::unique_ptr<Cluster> cluster_;
  fs::path gate_;
};

TEST_F(SwapRoom, TwoThatDoNotFitTogetherRunOneAfterTheOtherThoughUnitsAreFree) {
  start();
  if (!cluster_) return;
  const auto first = accepted({"--memory", "100MiB", "--swap-room", "40MiB"});
  const auto second = accepted({"--memory", "100MiB", "--swap-room", "40MiB"});
  ASSERT_TRUE(has_said(first, "written")) << cluster_->logs();
  EXPECT_TRUE(eventually([&] {
    return shown(second)["reason"].dump().find("room for swapping") != std::string::npos;
  })) << shown(second);
  EXPECT_EQ(shown(second)["state"], "queued");
  EXPECT_EQ(shown(second)["spec"]["swap_room_bytes"], 40 << 20);
  EXPECT_EQ(node()["info"]["units"], 2);
  EXPECT_EQ(node()["assigned_units"], 1);
  EXPECT_EQ(node()["info"]["swap_room_bytes"], 64 << 20);
  EXPECT_EQ(node()["assigned_swap_bytes"], 40 << 20);

  EXPECT_TRUE(eventually([&] { return given_by_the_node() == 40 << 20; })) << node().dump(2);

  const auto said = log(first);
  EXPECT_THAT(said, HasSubstr(fmt::format("budget {}\n", 100 << 20)));
  EXPECT_THAT(said,
              HasSubstr(fmt::format("tiers dir:{}={}\n", folder_of(first).native(), 40 << 20)));
  EXPECT_THAT(said, HasSubstr(fmt::format("folder {} 700\n", ::geteuid())));
  EXPECT_TRUE(fs::exists(folder_of(first) / "file"));

  open_gate();
  const auto one = ended(first), other = ended(second);
  EXPECT_GE(other["started_ms"].get<double>(), one["finished_ms"].get<double>());
  EXPECT_FALSE(fs::exists(folder_of(first)));
  EXPECT_FALSE(fs::exists(folder_of(second)));
  EXPECT_EQ(node()["assigned_swap_bytes"], 0);
  EXPECT_TRUE(eventually([&] { return given_by_the_node() == 0; })) << node().dump(2);
}

TEST_F(SwapRoom, MoreThanANodeOffersIsRefusedAndNoneIsNotGiven) {
  start();
  if (!cluster_) return;
  const auto refused = submit({"--swap-room", "65MiB"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.out + refused.err, HasSubstr("the largest node has 64.0 MiB"));
  open_gate();
  const auto submitted = cluster_->client().submit(
      {shell_task("echo \"has ${TIERPILOT_SWAP_TIERS-none} ${TIERPILOT_SWAP_BUDGET-none}\"")});
  ASSERT_TRUE(submitted);
  ended(submitted->tasks[0]);
  EXPECT_EQ(log(submitted->tasks[0]), "has none none\n");
}

TEST_F(SwapRoom, AKilledDaemonsSuccessorRemovesWhatItsTasksHad) {
  start();
  if (!cluster_) return;
  const auto id = accepted({"--swap-room", "40MiB"});
  ASSERT_TRUE(has_said(id, "written")) << cluster_->logs();
  EXPECT_TRUE(fs::exists(folder_of(id) / "file"));
  cluster_->node(0).kill_now();
  cluster_->start_node(0);
  ASSERT_TRUE(eventually([&] { return shown(id)["attempt"] == 2 && runs(id); }))
      << cluster_->logs();
  EXPECT_FALSE(fs::exists(folder_of(id)));
  EXPECT_TRUE(has_said(id, folder_of(id, 2).native())) << log(id);
  open_gate();
  ended(id);
  EXPECT_FALSE(fs::exists(folder_of(id, 2)));
}

TEST_F(SwapRoom, OutlivesACoordinator) {
  start();
  if (!cluster_) return;
  const auto first = accepted({"--swap-room", "40MiB"});
  ASSERT_TRUE(has_said(first, "written")) << cluster_->logs();
  cluster_->coordinator().kill_now();
  cluster_->start_coordinator();
  ASSERT_TRUE(eventually([&] { return runs(first) && node()["state"] == "up"; }))
      << cluster_->logs();
  EXPECT_EQ(node()["assigned_swap_bytes"], 40 << 20);
  const auto second = accepted({"--swap-room", "40MiB"}), small = accepted({"--name", "plain"});
  ASSERT_TRUE(eventually([&] { return runs(small); })) << cluster_->logs();
  EXPECT_EQ(shown(second)["state"], "queued");
  open_gate();
  ended(first);
  ended(second);
}

TEST_F(SwapRoom, IsItsUsersWhereTasksHaveUsersOfTheirOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may start daemons with other users";
  if (::access("/usr/bin/setpriv", X_OK) != 0) GTEST_SKIP() << "setpriv is not installed";
  fs::permissions(slow_.path(), fs::perms(0755));
  ASSERT_EQ(::chown(slow_.path().c_str(), kDaemon, kDaemon), 0);
  const auto number = std::to_string(kDaemon);
  const Argv as_daemon{
      "/usr/bin/setpriv", "--reuid",        number,       "--regid",     number,
      "--clear-groups",   "--no-new-privs", "--inh-caps", kCapabilities, "--ambient-caps",
      kCapabilities,      "--bounding-set", kCapabilities};
  start({.prefix = [&](int process) { return process < 0 ? Argv{} : as_daemon; },
         .node_more = fmt::format("[tasks]\nrun_as = \"pool:{}-{}\"\n", kFirst, kLast),
         .node_user = kDaemon,
         .others_pass = true});
  if (!cluster_) return;
  const auto id = accepted({"--swap-room", "40MiB"});
  ASSERT_TRUE(has_said(id, "written")) << cluster_->logs() << log(id);
  struct stat info {};
  ASSERT_EQ(::stat(folder_of(id).c_str(), &info), 0);
  EXPECT_GE(info.st_uid, kFirst);
  EXPECT_LE(info.st_uid, kLast);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  cluster_->node(0).kill_now();
  cluster_->start_node(0);
  ASSERT_TRUE(eventually([&] { return shown(id)["attempt"] == 2 && runs(id); }))
      << cluster_->logs();
  EXPECT_FALSE(fs::exists(folder_of(id)));
  open_gate();
  ended(id);
  EXPECT_TRUE(eventually([&] { return !fs::exists(folder_of(id, 2)); })) << cluster_->logs();
}

TEST_F(SwapRoom, ATrainingSwapsThereWithoutSayingHow) {
  if (std::system("/usr/bin/python3 -c 'import torch' > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "python3-torch is not installed";
  start();
  if (!cluster_) return;
  const auto library = std::string("TIERPILOT_SWAP_LIBRARY=") + program("TIERPILOT_TEST_SWAP");
  const auto id = submit_python(cluster_->address(),
                                {"--memory", "250MiB", "--swap-room", "60MiB", "--env", library},
                                kTraining, {});
  ended(id);
  const auto said = parse(log(id));
  EXPECT_GT(said["copies_out"].get<int>(), 0);
  EXPECT_GT(said["copies_in"].get<int>(), 0);
  ASSERT_EQ(said["tiers"].size(), 1u) << said.dump(2);
  EXPECT_EQ(said["tiers"][0]["name"], "dir:" + folder_of(id).native());
  EXPECT_EQ(said["tiers"][0]["capacity_bytes"], 60 << 20);
  EXPECT_FALSE(fs::exists(folder_of(id)));
}

}  // namespace
}  // namespace tierpilot::test
