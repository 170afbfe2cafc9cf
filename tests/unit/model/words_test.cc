// Enumerators have one word each, and are found again by it.
#include <gtest/gtest.h>

#include <set>

#include "model/node_order.h"
#include "model/policy_standing.h"
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

TEST(Words, OfPoliciesLeadBackToThem) {
  for (const auto mode : {PolicyMode::kShadow, PolicyMode::kAdvise, PolicyMode::kEnforce})
    EXPECT_EQ(parse_policy_mode(policy_mode_name(mode)), mode);
  for (const auto arm : {Arm::kPolicy, Arm::kControl, Arm::kShadow, Arm::kAlone})
    EXPECT_EQ(parse_arm(arm_name(arm)), arm);
  EXPECT_STREQ(standing_name(Standing::kProbation), "probation");
  EXPECT_FALSE(parse_policy_mode("trusted"));
  EXPECT_FALSE(parse_arm(""));
}

TEST(Words, OfOrdersAreOfACommandAndOfAState) {
  EXPECT_EQ(parse_node_order("drain"), NodeOrder::Kind::kDrained);
  EXPECT_EQ(parse_node_order("open"), NodeOrder::Kind::kNone);
  EXPECT_FALSE(parse_node_order("drained"));
  EXPECT_STREQ(node_order_name(NodeOrder::Kind::kNone, true), "open");
  EXPECT_STREQ(node_order_name(NodeOrder::Kind::kCordoned, true), "cordoned");
  EXPECT_STREQ(node_order_name(NodeOrder::Kind::kDrained, true), "draining");
  EXPECT_STREQ(node_order_name(NodeOrder::Kind::kDrained, false), "drained");
}

TEST(UnitId, NamesNodeEngineAndUnit) {
  const auto first = cpu_unit_id("n1", 3);
  const auto cpu = parse_unit_id(first);
  ASSERT_TRUE(cpu);
  EXPECT_EQ(cpu->node, "n1");
  EXPECT_EQ(cpu->engine, Engine::kCpu);
  EXPECT_EQ(cpu->unit, "3");
  const auto second = gpu_unit_id("rack/n1", "GPU-5f");
  const auto gpu = parse_unit_id(second);
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->node, "rack/n1");
  EXPECT_EQ(gpu->engine, Engine::kGpu);
  EXPECT_EQ(gpu->unit, "GPU-5f");
  for (const char* wrong : {"", "/", "n1", "n1/cpu", "n1/cpu/", "/cpu/1", "n1/tpu/1", "cpu/1"})
    EXPECT_FALSE(parse_unit_id(wrong)) << wrong;
}

TEST(UnitId, OfSharedCoresIsNoUnitOfGangs) {
  const auto id = shared_cores_id("rack/n1", 12);
  const auto cores = parse_shared_cores_id(id);
  ASSERT_TRUE(cores);
  EXPECT_EQ(cores->node, "rack/n1");
  EXPECT_EQ(cores->number, 12U);
  EXPECT_FALSE(parse_unit_id(id));
  for (const char* wrong : {"", "n1/cores/", "/cores/1", "n1/cpu/1", "n1/cores/1a", "n1/cores/-1",
                            "n1/cores/99999999999"})
    EXPECT_FALSE(parse_shared_cores_id(wrong)) << wrong;
}

}  // namespace
}  // namespace tierpilot
