// What nodes tell of themselves, as it is taken; and what is told of their tasks.
#include <capnp/message.h>
#include <gmock/gmock.h>

#include "coordinator/service/wire.h"
#include "rpc/limits.h"

namespace tierpilot {
namespace {

using ::testing::ElementsAre;

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

// It is stored with the task, and told to whoever lists it.
TEST(ReportWire, AnEndIsToldBriefly) {
  const std::string much(1 << 20, 'x');
  capnp::MallocMessageBuilder message;
  auto told = message.initRoot<wire::Exit>();
  told.setHow("exited");
  told.setReason(much);
  told.setMemoryTier(much);
  told.initMemory(1)[0].setName(much);
  const auto exit = read_exit(told.asReader());
  EXPECT_EQ(exit.reason, std::string(4096, 'x'));
  EXPECT_EQ(exit.memory_tier.size(), 4096U);
  EXPECT_EQ(exit.memory.at(0).first.size(), 4096U);
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
