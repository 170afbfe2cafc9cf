// tierpilot-trainer as processes: what is killed in the middle goes on from what it had saved, and
// ends with the loss of a run that nobody disturbed, to the last bit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "base/text/json_text.h"
#include "tests/support/free_port.h"
#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

using ::testing::HasSubstr;

// What stands behind the last "loss " that it wrote; empty: it wrote none.
std::string loss_in(const std::string& log) {
  const auto at = log.rfind("loss ");
  return at == std::string::npos ? "" : log.substr(at, log.find('\n', at) - at);
}

int began_at(const std::string& log) {
  int step = -1;
  const auto at = log.rfind("begins at iteration ");
  if (at != std::string::npos) std::sscanf(log.c_str() + at, "begins at iteration %d", &step);
  return step;
}

bool ended_well(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Ranks without a cluster, with the environment that one would give them.
class TrainerAlone : public testing::TestWithParam<int> {
 protected:
  std::vector<Process> start(const std::string& name, const Argv& more) {
    const auto port = free_port();
    std::vector<Process> ranks;
    for (int rank = 0; rank < GetParam(); ++rank) {
      Argv argv{"/usr/bin/env",
                fmt::format("RANK={}", rank),
                fmt::format("WORLD_SIZE={}", GetParam()),
                "MASTER_ADDR=127.0.0.1",
                fmt::format("MASTER_PORT={}", port),
                program("TIERPILOT_TEST_TRAINER"),
                "mlp",
                "--steps",
                "300",
                "--state",
                state(name).string()};
      argv.insert(argv.end(), more.begin(), more.end());
      ranks.emplace_back(argv, log(name, rank));
    }
    return ranks;
  }
  std::string loss_of(const std::string& name, const Argv& more) {
    auto ranks = start(name, more);
    for (auto& rank : ranks) {
      const auto status = rank.wait();
      EXPECT_TRUE(status && ended_well(*status)) << read_text(log(name, 0));
    }
    return loss_in(read_text(log(name, 0)));
  }
  std::filesystem::path state(const std::string& name) const { return folder_.path() / name; }
  std::filesystem::path log(const std::string& name, int rank) const {
    return folder_.path() / fmt::format("{}-{}.log", name, rank);
  }

  const TempFolder folder_{"/var/tmp"};
};

TEST_P(TrainerAlone, KilledInTheMiddleItGoesOnAndEndsAlike) {
  const auto undisturbed = loss_of("undisturbed", {});
  ASSERT_FALSE(undisturbed.empty());
  // Slow enough that it cannot have ended when it is killed.
  auto ranks = start("killed", {"--step-ms", "200", "--save-every-s", "0.1"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(state("killed")); }))
      << read_text(log("killed", 0));
  ranks.back().kill_now();
  if (ranks.size() > 1) {
    const auto status = ranks[0].wait();
    ASSERT_TRUE(status) << "who is left alone ends by itself";
    EXPECT_FALSE(ended_well(*status));
    EXPECT_THAT(read_text(log("killed", 0)), HasSubstr("rank 0 of 2 lost the others"));
  }
  EXPECT_EQ(loss_in(read_text(log("killed", 0))), "");
  EXPECT_EQ(loss_of("resumed", {"--resume", state("killed").string()}), undisturbed);
  EXPECT_GT(began_at(read_text(log("resumed", 0))), 0);
  EXPECT_LT(began_at(read_text(log("resumed", 0))), 300);
}

TEST_P(TrainerAlone, ASignalToOneRankStopsAllAfterTheSameStep) {
  const auto undisturbed = loss_of("undisturbed", {});
  auto ranks = start("stopped", {"--step-ms", "200", "--save-every-s", "0.1"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(state("stopped")); }));
  ranks.back().signal(SIGTERM);
  for (auto& rank : ranks) {
    const auto status = rank.wait();
    ASSERT_TRUE(status && WIFEXITED(*status));
    EXPECT_EQ(WEXITSTATUS(*status), 128 + SIGTERM);
  }
  EXPECT_THAT(read_text(log("stopped", 0)), HasSubstr("stopped at iteration "));
  EXPECT_EQ(loss_of("resumed", {"--resume", state("stopped").string()}), undisturbed);
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrainerAlone, testing::Values(1, 2),
                         testing::PrintToStringParamName());

struct Trained {
  Json end;
  int64_t peak_bytes = 0;  // of private resident memory, as seen from outside
};

// A deep net whose backward pass needs some 200 MB more than the trainer itself.
Trained train_deep_net(const std::filesystem::path& folder, const Argv& more) {
  const auto log = folder / "log";
  std::filesystem::remove(log);
  Argv argv{"/usr/bin/env", "TIERPILOT_SWAP_DIR=" + folder.string(),
            program("TIERPILOT_TEST_TRAINER"), "-j", "residual"};
  for (const auto* word : {"--steps", "4", "--samples", "4000", "--batch", "4000", "--state"})
    argv.emplace_back(word);
  argv.push_back((folder / "state").string());
  argv.insert(argv.end(), more.begin(), more.end());
  Process process(argv, log);
  Trained trained;
  while (process.running()) {
    int64_t all = 0, resident = 0, shared = 0;
    std::ifstream(fmt::format("/proc/{}/statm", process.pid())) >> all >> resident >> shared;
    trained.peak_bytes = std::max(trained.peak_bytes, (resident - shared) * getpagesize());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto text = read_text(log);  // with what libraries say
  trained.end = parse_json<Json>(text.substr(text.rfind("{\"schema\"")));
  return trained;
}

const Trained& trained_without_budget() {
  static const Trained kTrained = train_deep_net(TempFolder("/var/tmp").path(), {});
  return kTrained;
}

TEST(TrainerBudget, HoldsItsMemoryAndEndsWithTheSameLoss) {
  const TempFolder folder("/var/tmp");
  const auto& plain = trained_without_budget();
  const auto held = train_deep_net(folder.path(), {"--swap-budget", "200MiB"});
  EXPECT_EQ(held.end["loss"], plain.end["loss"]);
  EXPECT_EQ(plain.end["swap"], nullptr);
  EXPECT_GT(held.end["swap"]["copies_in"], 3 * 12);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory themselves
  EXPECT_LE(held.end["swap"]["device_peak_bytes"], 200 << 20);
  EXPECT_LE(held.peak_bytes, 220 << 20) << "nobody holds what the loss at the end takes";
  EXPECT_GE(plain.peak_bytes, 2 * held.peak_bytes);
#endif
}

TEST(TrainerBudget, BlocksThatMayBeComputedAgainEndWithTheSameLoss) {
  const TempFolder folder("/var/tmp");
  const auto& plain = trained_without_budget();
  const auto held = train_deep_net(folder.path(), {"--swap-budget", "200MiB", "--swap-recompute"});
  EXPECT_EQ(held.end["loss"], plain.end["loss"]);
  EXPECT_EQ(held.end["swap"]["segments"], 4 * 12) << held.end["swap"];
}

TEST(TrainerBudget, ToComputeAgainNeedsOne) {
  const auto outcome =
      run_command({program("TIERPILOT_TEST_TRAINER"), "-j", "residual", "--swap-recompute"});
  expect_json_error(outcome, 2, "--swap-budget");
}

TEST(TrainerBudget, OneThatIsNoSizeStartsNothing) {
  const auto outcome =
      run_command({program("TIERPILOT_TEST_TRAINER"), "-j", "mlp", "--swap-budget", "much"});
  expect_json_error(outcome, 1, "--swap-budget");
  EXPECT_THAT(outcome.err, HasSubstr("'much' is no size"));
}

class TrainerGang : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(
        ClusterOptions{.nodes = 2, .units = 2, .lease_ms = 10'000, .max_attempts = 50});
  }
  uint64_t submit(const std::vector<std::string>& more) {
    std::vector<std::string> line{"-j",
                                  "task",
                                  "submit",
                                  "--ranks",
                                  "2",
                                  "--ranks-per-node",
                                  "1:1",
                                  "--max-restarts",
                                  "9",
                                  "--env",
                                  "GLOO_SOCKET_IFNAME=lo",
                                  "--",
                                  program("TIERPILOT_TEST_TRAINER"),
                                  "conv",
                                  "--steps",
                                  "150"};
    line.insert(line.end(), more.begin(), more.end());
    return submitted_id(tierctl_at(cluster_->address(), line));
  }
  Json shown(uint64_t id) { return test::shown(cluster_->client(), id); }
  bool has_safe_checkpoint(uint64_t id) {
    const auto task = shown(id);
    for (const auto& checkpoint : task["checkpoints"])
      if (checkpoint["safe"] == true) return true;
    return false;
  }
  Json end_of(uint64_t id) {
    const auto task = cluster_->client().wait(id, 120'000);
    EXPECT_TRUE(task) << task.error().message << cluster_->logs();
    return task ? *task : Json();
  }
  std::string log(uint64_t id) { return cluster_->client().log(id).value_or(""); }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(TrainerGang, LosesARankAndEndsWithTheLossOfAnUndisturbedRun) {
  const auto first = submit({});
  EXPECT_EQ(end_of(first)["state"], "succeeded") << shown(first).dump(2);
  const auto undisturbed = loss_in(log(first));
  ASSERT_FALSE(undisturbed.empty()) << log(first);
  EXPECT_EQ(began_at(log(first)), 0);

  const auto id = submit({"--step-ms", "100", "--save-every-s", "0.2"});
  ASSERT_TRUE(eventually([&] { return has_safe_checkpoint(id); })) << shown(id).dump(2);
  const auto before = shown(id);
  EXPECT_GE(before["checkpointing"]["taken"], 1);
  ASSERT_TRUE(kill_told(before["ranks"][1]["pid"])) << before["ranks"];
  const auto end = end_of(id);
  EXPECT_EQ(end["state"], "succeeded") << shown(id).dump(2);
  EXPECT_EQ(end["restarts"], 1);
  EXPECT_EQ(end["attempt"], 2);
  EXPECT_GT(began_at(log(id)), 0) << log(id);
  EXPECT_EQ(loss_in(log(id)), undisturbed);
  const auto last = shown(id)["progress"].back();
  EXPECT_EQ(last["iteration"], 150) << last;
  EXPECT_EQ(last["iterations"], 150);
  EXPECT_EQ(last["samples"], 150 * 120);
}

}  // namespace
}  // namespace tierpilot::test
