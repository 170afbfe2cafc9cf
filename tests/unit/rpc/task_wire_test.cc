#include "rpc/task_wire.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

namespace tierpilot {
namespace {

Result<TaskSpec> there_and_back(const TaskSpec& spec) {
  capnp::MallocMessageBuilder message;
  write_spec(spec, message.initRoot<wire::TaskSpec>());
  return read_spec(message.getRoot<wire::TaskSpec>());
}

TEST(TaskWire, ASpecArrivesAsItWasSubmitted) {
  TaskSpec spec;
  spec.name = "train";
  spec.argv = {"python3", "a b", "\xff"};
  spec.env = {{"A", "1"}, {"B", ""}};
  spec.datasets = {{"genes", true}, {"map", false}};
  spec.units = 3;
  spec.memory_bytes = 1 << 30;
  spec.swap_room_bytes = 3 << 20;
  spec.float_operations = 1e9;
  spec.int_operations = 2e9;
  spec.time_limit_ms = 5000;
  spec.after = {"fetch"};
  spec.node = "n1";
  spec.memory_tier = "heap:2,1";
  spec.priority = -7;
  spec.gang = {.ranks = 4,
               .engine = Engine::kGpu,
               .gpus_per_rank = 2,
               .ranks_per_node_min = 1,
               .ranks_per_node_max = 2,
               .estimate_ms = 60'000,
               .max_restarts = 3,
               .start_within_ms = 1000};
  const auto got = there_and_back(spec);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->name, spec.name);
  EXPECT_EQ(got->argv, spec.argv);
  EXPECT_EQ(got->env, spec.env);
  ASSERT_EQ(got->datasets.size(), 2u);
  EXPECT_EQ(got->datasets[0].dataset, "genes");
  EXPECT_TRUE(got->datasets[0].write);
  EXPECT_FALSE(got->datasets[1].write);
  EXPECT_EQ(got->units, spec.units);
  EXPECT_EQ(got->memory_bytes, spec.memory_bytes);
  EXPECT_EQ(got->swap_room_bytes, spec.swap_room_bytes);
  EXPECT_EQ(got->float_operations, spec.float_operations);
  EXPECT_EQ(got->int_operations, spec.int_operations);
  EXPECT_EQ(got->time_limit_ms, spec.time_limit_ms);
  EXPECT_EQ(got->after, spec.after);
  EXPECT_EQ(got->node, spec.node);
  EXPECT_EQ(got->memory_tier, spec.memory_tier);
  EXPECT_EQ(got->priority, spec.priority);
  EXPECT_EQ(got->gang.ranks, 4u);
  EXPECT_EQ(got->gang.engine, Engine::kGpu);
  EXPECT_EQ(got->gang.gpus_per_rank, 2u);
  EXPECT_EQ(got->gang.ranks_per_node_min, 1u);
  EXPECT_EQ(got->gang.ranks_per_node_max, 2u);
  EXPECT_EQ(got->gang.estimate_ms, 60'000);
  EXPECT_EQ(got->gang.max_restarts, 3u);
  EXPECT_EQ(got->gang.start_within_ms, 1000);
}

TEST(TaskWire, OneProcessIsNoGang) {
  const auto got = there_and_back({});
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->is_gang());
}

TEST(TaskWire, AnEngineOfALaterVersionIsRefusedByName) {
  capnp::MallocMessageBuilder message;
  auto from = message.initRoot<wire::TaskSpec>();
  from.setName("train");
  from.initGang().setRanks(2);
  from.getGang().setEngine("tpu");
  const auto got = read_spec(from);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(got.error().message, "task 'train': 'tpu' is no engine: cpu or gpu");
}

}  // namespace
}  // namespace tierpilot
