// A coordinator is at work at once, and small: what only learning needs is loaded when it learns.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

class LearningLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    cluster_ = std::make_unique<Cluster>(ClusterOptions{
        .nodes = 1,
        .policy = "dqn",
        .coordinator_more = "[dqn]\ntrain_start = 16\nbatch = 8\n[dqn-published]\nwidth = 16\n"
                            "layers = 1\n"});
  }
  bool has_libtorch() {
    std::ifstream maps("/proc/" + std::to_string(cluster_->coordinator().pid()) + "/maps");
    std::ostringstream all;
    all << maps.rdbuf();
    EXPECT_NE(all.str().find("libcapnp"), std::string::npos) << "not the coordinator's";
    return all.str().find("libtorch") != std::string::npos;
  }
  void run_tasks(int count) {
    const auto submitted =
        cluster_->client().submit(std::vector<TaskPlan>(count, shell_task("true")));
    ASSERT_TRUE(submitted) << submitted.error().message;
    for (const uint64_t id : submitted->tasks) ASSERT_TRUE(cluster_->client().wait(id));
  }
  Json shown(const std::string& policy) {
    const auto told =
        run_command({program("TIERPILOT_TEST_TIERCTL"), "-j", "policy", "show", policy},
                    {{"TIERPILOT_COORDINATOR", cluster_->address()}});
    EXPECT_EQ(told.code, 0) << told.err;
    return told.code == 0 ? parse_json<Json>(told.out) : Json{};
  }
  void use(const std::string& policy) {
    const auto used = run_command({program("TIERPILOT_TEST_TIERCTL"), "policy", "use", policy},
                                  {{"TIERPILOT_COORDINATOR", cluster_->address()}});
    ASSERT_EQ(used.code, 0) << used.err;
  }
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(LearningLibrary, IsLoadedWithTheFirstBatch) {
  run_tasks(8);
  EXPECT_FALSE(has_libtorch());
  cluster_->client().disconnect();
  cluster_->coordinator().end();
  cluster_->start_coordinator();
  EXPECT_FALSE(has_libtorch()) << "what was saved before anything was learned";
  run_tasks(40);
  EXPECT_TRUE(eventually([&] { return shown("dqn")["learner"]["training_steps"] > 0; },
                         std::chrono::seconds(60)))
      << shown("dqn").dump() << cluster_->logs();
  EXPECT_TRUE(has_libtorch());
}

TEST_F(LearningLibrary, IsLoadedForAPolicyThatIsChosen) {
  EXPECT_FALSE(has_libtorch());
  use("dqn-published");
  EXPECT_TRUE(eventually([&] { return has_libtorch(); }, std::chrono::seconds(60)))
      << cluster_->logs();
  EXPECT_TRUE(eventually(
      [&] {
        const auto tasks = cluster_->client().submit({shell_task("true")});
        EXPECT_TRUE(cluster_->client().wait(tasks->tasks.at(0)));
        const auto why = cluster_->client().explain(tasks->tasks.at(0)).value();
        return why.at(0)["policy"] == "dqn-published" &&
               why.at(0)["candidates"].at(0)["q"].is_number();
      },
      std::chrono::seconds(60)))
      << cluster_->logs();
}

}  // namespace
}  // namespace tierpilot::test
