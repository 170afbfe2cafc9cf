// Figures of a cluster do not become more with its nodes, tasks and users.
#include "coordinator/service/metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace tierpilot {
namespace {

class NoLink final : public NodeLink {
 public:
  void start(const Assignment&, Started) override {}
  void cancel(AttemptId, const std::string&) override {}
  void create_dataset(const std::string&, const DatasetSource&,
                      std::function<void(Result<DatasetVersion>)>) override {}
  void drop_dataset(const std::string&, uint64_t) override {}
  void discard_version(const DatasetVersion&) override {}
  void set_home(const DatasetVersion&, bool) override {}
  void keep_dataset(const DatasetNeed&, std::function<void(Status)>) override {}
  void verify_dataset(const DatasetVersion&, std::function<void(Result<CopyCheck>)>) override {}
  void set_share(AttemptId, uint32_t, Shared) override {}
  void tell_job(AttemptId, const JobAdvice&) override {}
  void release(AttemptId) override {}
};

class CoordinatorMetrics : public ::testing::Test {
 protected:
  CoordinatorMetrics() {
    std::filesystem::remove_all(directory_);
    store_ = std::move(*Store::open(
        directory_, [](auto work) { work(); }, Store::Commits::kByCaller));
    host_ = std::move(*PolicyHost::start({.state_dir = {}, .active = "least-loaded"}));
    core_ = std::make_unique<Core>(CoreSettings{}, clock_, *store_, *host_,
                                   Dispatcher::Hooks{[](auto) {}, [](int64_t, auto) {}});
    if (auto begun = core_->begin({}, 0); !begun) throw std::runtime_error(begun.error().message);
  }
  ~CoordinatorMetrics() override {
    core_.reset();
    host_.reset();
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void add_node(const std::string& number) {
    NodeFacts facts;
    facts.name = "n" + number;
    facts.units = 4;
    facts.data_address = "unix:/" + facts.name;
    ASSERT_TRUE(core_->membership.join(facts, std::make_shared<NoLink>(), {}, {}));
    core_->intake.submit({"user " + facts.name, "r" + facts.name}, {}, [](auto) {});
    core_->state.catalog.put({.name = "d" + facts.name, .bytes = 1, .home = facts.name});
  }
  std::string page() { return coordinator_metrics(*core_, 0); }
  // Lines that are no comments.
  ptrdiff_t series() {
    const auto text = page();
    ptrdiff_t series = 0;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) series += text[at] != '#';
    return series;
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("tierpilot-metrics-" + std::to_string(::getpid()));
  ManualClock clock_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Core> core_;
};

TEST_F(CoordinatorMetrics, AThousandNodesHaveAsManySeriesAsOne) {
  add_node("0");
  const auto of_one = series();
  EXPECT_GT(of_one, 50);
  for (int i = 1; i < 1'000; ++i) add_node(std::to_string(i));
  EXPECT_EQ(series(), of_one);
}

TEST_F(CoordinatorMetrics, GangsAndTasksThatWaitForSharesAreQueuedAndRanksAreNoTasks) {
  TaskSpec gang, shared;
  gang.argv = shared.argv = {"true"};
  gang.gang = {.ranks = 2, .max_ranks = 3};
  shared.share = {.wanted = true, .milli = 100};
  bool taken = false;
  core_->intake.submit({"user", "r"}, {gang, shared},
                       [&](const auto& done) { taken = bool(done); });
  while (store_->commit_next()) continue;
  ASSERT_TRUE(taken);
  EXPECT_NE(page().find("tierpilot_tasks{state=\"queued\"} 2\n"), std::string::npos);
  EXPECT_NE(page().find("tierpilot_tasks{state=\"waiting\"} 0\n"), std::string::npos);
}

TEST_F(CoordinatorMetrics, NoRewardIsNoneOfZero) {
  core_->state.scores.decided("least-loaded", 1000);
  EXPECT_NE(page().find("tierpilot_rewards_total{policy=\"least-loaded\"} 0\n"), std::string::npos);
  EXPECT_EQ(page().find("tierpilot_reward_mean"), std::string::npos);
  core_->state.scores.rewarded("least-loaded", 0.5);
  EXPECT_NE(page().find("tierpilot_reward_mean{policy=\"least-loaded\"} 0.5\n"), std::string::npos);
}

TEST_F(CoordinatorMetrics, AnEndThatTheDiskDoesNotTakeIsNoTaskThatWaits) {
  TaskSpec task;
  task.argv = {"true"};
  core_->intake.submit({"user", "r"}, {task}, [](const auto&) {});
  while (store_->commit_next()) continue;
  auto& tasks = core_->state.tasks;
  auto& ended = *tasks.find(tasks.all().begin()->first);
  tasks.advance(ended, TaskState::kSucceeded);
  core_->state.refused_ends.insert(ended.id);
  EXPECT_NE(page().find("tierpilot_tasks{state=\"ending\"} 1\n"), std::string::npos);
  EXPECT_NE(page().find("tierpilot_tasks{state=\"waiting\"} 0\n"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot
