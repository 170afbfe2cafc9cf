// Enumerators have one word each, and are found again by it.
#include <gtest/gtest.h>

#include <set>

#include "model/task_end.h"
#include "model/task_state.h"
#include "model/unit_id.h"

namespace tierpilot {
namespace {

TEST(Words, OfEveryEndLeadBackToIt) {
  std::set<std::string_view> words;
  for (int i = 0; i < kTaskEnds; ++i) {
    const auto how = static_cast<TaskEnd>(i);
    EXPECT_TRUE(words.insert(task_end_name(how)).second) << task_end_name(how);
    EXPECT_EQ(parse_task_end(task_end_name(how)), how);
  }
  EXPECT_EQ(task_end_name(TaskEnd::kMemoryLimit), "memory_limit");
  EXPECT_FALSE(parse_task_end("Exited"));
  EXPECT_FALSE(parse_task_end(""));
}

TEST(Words, OfEveryStateLeadBackToIt) {
  for (const auto state :
       {TaskState::kWaiting, TaskState::kQueued, TaskState::kAssigned, TaskState::kRunning,
        TaskState::kSucceeded, TaskState::kFailed, TaskState::kCancelled})
    EXPECT_EQ(parse_task_state(task_state_name(state)), state);
  EXPECT_FALSE(parse_task_state("done"));
}

TEST(UnitId, NamesNodeEngineAndUnit) {
  const auto cpu = parse_unit_id(cpu_unit_id("n1", 3));
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->node, "n1");
  EXPECT_EQ(cpu->engine, Engine::kCpu);
  EXPECT_EQ(cpu->unit, "3");
  const auto id = gpu_unit_id("rack/n1", "GPU-5f");
  const auto gpu = parse_unit_id(id);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->node, "rack/n1");
  EXPECT_EQ(gpu->engine, Engine::kGpu);
  EXPECT_EQ(gpu->unit, "GPU-5f");
  for (const char* wrong : {"", "/", "n1", "n1/cpu", "n1/cpu/", "/cpu/1", "n1/tpu/1", "cpu/1"})
    EXPECT_FALSE(parse_unit_id(wrong)) << wrong;
}

}  // namespace
}  // namespace tierpilot
