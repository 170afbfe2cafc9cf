// What nodes tell of themselves, as it is taken.
#include <capnp/message.h>
#include <gmock/gmock.h>

#include "coordinator/service/wire.h"

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

}  // namespace
}  // namespace tierpilot
