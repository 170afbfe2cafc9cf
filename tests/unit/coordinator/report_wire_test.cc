// What nodes tell of themselves, as it is taken; and what is told of their tasks.
#include <capnp/message.h>
#include <gmock/gmock.h>

#include "coordinator/service/wire.h"
#include "rpc/limits.h"

namespace tierpilot {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// They name the units that are stored and shown: NODE/gpu/UUID.
TEST(ReportWire, GpusAreTakenThatHaveAName) {
  const std::vector<std::string> uuids{"GPU-1", "", "a/b", std::string(97, 'x'), "GPU-2"};
  capnp::MallocMessageBuilder message;
  auto info = message.initRoot<wire::NodeInfo>();
  auto gpus = info.initGpus(static_cast<unsigned>(uuids.size()));
  for (unsigned i = 0; i < gpus.size(); ++i) gpus[i].setUuid(uuids[i]);
  EXPECT_THAT(read_facts(info.asReader()).gpus, ElementsAre("GPU-1", "GPU-2"));

  auto shared = info.initSharedUnits(static_cast<unsigned>(uuids.size()));
  for (unsigned i = 0; i < shared.size(); ++i) {
    shared[i].setGpu(uuids[i]);
    shared[i].setCores(2);
  }
  std::vector<std::string> taken;
  for (const auto& unit : read_facts(info.asReader()).shared_units) taken.push_back(unit.gpu);
  EXPECT_THAT(taken, ElementsAre("GPU-1", "", "GPU-2")) << "one without a GPU is of cores";
}

TEST(ReportWire, WhatThereIsAndWasNoRoomForIsTaken) {
  capnp::MallocMessageBuilder message;
  auto info = message.initRoot<wire::NodeInfo>();
  info.setLargestWriteBytes(4096);
  EXPECT_EQ(read_facts(info.asReader()).largest_write_bytes, 4096U);
  auto told = message.initRoot<wire::Exit>();
  told.setNoRoomBytes(8192);
  EXPECT_EQ(read_exit(told.asReader()).no_room_bytes, 8192U);
}

// A gang has none, nor has a task whose data is on its way: zeros would be no figures.
TEST(ReportWire, ARewardIsToldOnceDataWasServed) {
  capnp::MallocMessageBuilder message;
  auto told = message.initRoot<wire::Decision>();
  DecisionRecord decision;
  write_decision(decision, told);
  EXPECT_FALSE(told.hasReward());
  decision.reward.latency_ns = 5;
  write_decision(decision, told);
  EXPECT_EQ(told.getReward().getLatencyNs(), 5u);
}

// It is stored with the task, and told to whoever lists it.
TEST(ReportWire, AnEndIsToldBriefly) {
  const std::string much(1 << 20, 'x');
  capnp::MallocMessageBuilder message;
  auto told = message.initRoot<wire::Exit>();
  told.setHow("exited");
  told.setReason(much);
  told.setMemoryTier(much);
  told.initMemory(1)[0].setName(much);
  told.initIoReadBytes().setUnavailable(much);
  told.initMemory(1)[0].initValue().setUnavailable(much);
  const auto exit = read_exit(told.asReader());
  EXPECT_EQ(exit.reason, std::string(4096, 'x') + "...");
  EXPECT_LT(exit.memory_tier.size(), 5000U);
  EXPECT_LT(exit.memory.at(0).first.size(), 5000U);
  EXPECT_EQ(exit.io_read_bytes.unavailable, std::string(512, 'x') + "...");
  EXPECT_LT(exit.memory.at(0).second.unavailable.size(), 600U);
}

TEST(ReportWire, WhatATaskWroteIsNoMoreThanATaskMayHave) {
  const auto read = [](unsigned count, const std::string& name) {
    capnp::MallocMessageBuilder message;
    auto told = message.initRoot<wire::Exit>();
    for (auto replica : told.initWritten(count)) replica.setDataset(name);
    return read_exit(told.asReader()).written;
  };
  const std::string longest(128, 'd');
  EXPECT_THAT(read(7'000, longest), SizeIs(7'000));
  EXPECT_EQ(read(1, longest).at(0).dataset, longest);
  EXPECT_LT(read(20'000, longest).size(), 8'000U);
  EXPECT_EQ(read(1, std::string(1 << 20, 'd')).at(0).dataset, longest + "...");
}

TEST(ReportWire, AJobIsToldBriefly) {
  const std::string much(1 << 20, 'x');
  capnp::MallocMessageBuilder message;
  auto told = message.initRoot<wire::JobReport>();
  told.initLoss().setUnavailable(much);
  told.initMeasures(1)[0].setName(much);
  const auto point = read_job_report(told.asReader());
  EXPECT_LT(point.loss.unavailable.size(), 600U);
  EXPECT_LT(point.measures.at(0).first.size(), 70U);
}

// As many as a gang may have, each with all that an end tells.
TEST(TaskWire, AGangOfThousandsThatEndedFitsAMessage) {
  Task rank;
  rank.user = "uid 1000";
  rank.policy = "most-loaded-first";
  rank.node = "a-node.with-a-long-name.of-some-cluster.example";
  rank.state = TaskState::kFailed;
  rank.reason = std::string(99, 'r') + "\u00e4" + std::string(4000, 'r');
  rank.rank = RankOf{.gang = 1, .rank = 7, .cpu_units = {1, 2}, .gpus = {"GPU-1"}};
  rank.exit = TaskExit{.how = TaskEnd::kExited, .reason = rank.reason};
  for (int i = 0; i < 40; ++i)
    rank.exit->memory.emplace_back("a_figure_of_memory", Figure{1.0, {}});
  rank.served = ServedData{};
  capnp::MallocMessageBuilder message;
  auto gang = message.initRoot<wire::Task>();
  write_ranks(std::vector<Task>(4096, rank), gang);
  EXPECT_LT(message.sizeInWords() * sizeof(capnp::word), RpcLimits{}.max_frame_bytes);
  ASSERT_EQ(gang.getRanks().size(), 4096u);
  const auto last = gang.getRanks()[4095].asReader();
  EXPECT_EQ(std::string(last.getReason()), std::string(99, 'r') + "...");
  EXPECT_EQ(last.getRank(), 7u);
  EXPECT_EQ(std::string(last.getExit().getHow()), "exited");
  EXPECT_EQ(last.getExit().getMemory().size(), 0u);
}

}  // namespace
}  // namespace tierpilot
