#include "daemon/agent/tasks/task_env.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tierpilot {
namespace {

TEST(TaskEnv, RefusesDatasetsThatMeet) {
  auto status = agent::check_dataset_env({{.name = "a-b"}, {.name = "a_b"}});
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("'a_b'"), std::string::npos);
  EXPECT_TRUE(agent::check_dataset_env({{.name = "a"}, {.name = "b"}}));
}

TEST(TaskEnv, NodeVariablesWin) {
  agent::Assignment assignment;
  assignment.attempt = {7, 2};
  assignment.units = 2;
  assignment.env = {{"MINE", "1"}, {"TIERPILOT_TASK_ID", "forged"}};
  ServedItem served;
  served.name = "d";
  served.path = "/fast/d";
  const auto env = agent::task_environment(assignment, {served}, {0, 1}, "n1", "/srv/7-2");
  const auto has = [&](const std::string& name, const std::string& value) {
    return std::count(env.begin(), env.end(), std::pair(name, value)) == 1;
  };
  EXPECT_TRUE(has("MINE", "1"));
  EXPECT_TRUE(has("TIERPILOT_TASK_ID", "7"));
  EXPECT_TRUE(has("TIERPILOT_ATTEMPT", "2"));
  EXPECT_TRUE(has("TIERPILOT_CPUS", "0-1"));
  EXPECT_TRUE(has("TIERPILOT_DATASET_D", "/fast/d"));
  EXPECT_TRUE(has("TMPDIR", "/srv/7-2"));
  EXPECT_FALSE(has("TIERPILOT_TASK_ID", "forged"));
}

}  // namespace
}  // namespace tierpilot
