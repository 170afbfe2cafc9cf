#include "tests/dst/versions.h"

#include "coordinator/service/wire.h"

namespace tierpilot::dst {

ProgramVersion program_of(Version version) {
  auto program = own_program("tierpilotd");
  switch (version) {
    case Version::kCurrent:
      break;
    case Version::kBeforeGangs:
      program.version = "0.0.1";
      program.protocol = program.oldest_protocol = kOldestProtocol;
      program.features.clear();
      break;
    case Version::kNewer:
      program.version = "9.0.0";
      program.protocol = kProtocol + 1;
      program.features.insert("of-tomorrow");
      break;
    case Version::kTooNew:
      program.version = "10.0.0";
      program.protocol = program.oldest_protocol = kProtocol + 2;
      break;
  }
  return program;
}

bool understands_today(Version version) {
  return version != Version::kTooNew;
}

NodeInfo describe_node(const std::string& name, uint64_t instance,
                       const std::vector<uint64_t>& predecessors, uint32_t units,
                       const SharedUnits& shared_units, uint64_t swap_room_bytes, Version version) {
  auto message = std::make_shared<capnp::MallocMessageBuilder>();
  auto info = message->initRoot<wire::NodeInfo>();
  info.setName(name);
  info.setInstance(instance);
  auto before = info.initPredecessors(static_cast<unsigned>(predecessors.size()));
  for (unsigned i = 0; i < before.size(); ++i) before.set(i, predecessors[i]);
  info.setUnits(units);
  info.setMemoryBytes(1 << 30);
  info.setFastBudgetBytes(64 << 20);
  info.setDataAddress(name);
  const auto program = program_of(version);
  if (program.can(kShareFeature)) {
    auto out = info.initSharedUnits(static_cast<unsigned>(shared_units.size()));
    for (unsigned i = 0; i < out.size(); ++i) {
      const auto& unit = shared_units[i];
      out[i].setType(unit.type);
      out[i].setCores(unit.gpu.empty() ? unit.cores : 0);
      out[i].setMemoryBytes(unit.memory_bytes);
      out[i].setGpu(unit.gpu);
    }
  }
  if (program.can(kSwapRoomFeature)) info.setSwapRoomBytes(swap_room_bytes);
  write_program(program, info.initProgram());
  return message;
}

Result<NodeFacts> admit_node(const NodeInfo& message) {
  const auto info = message->getRoot<wire::NodeInfo>().asReader();
  const auto own = own_program("tierpilot-coordinator");
  if (auto understood = check_programs(own, read_program(info.getProgram(), "tierpilotd"));
      !understood)
    return tl::unexpected(understood.error());
  return read_facts(info);
}

}  // namespace tierpilot::dst
