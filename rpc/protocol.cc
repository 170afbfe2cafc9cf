#include "rpc/protocol.h"

#include <fmt/format.h>

#include "rpc/task_wire.h"

namespace tierpilot {

std::string ProgramVersion::label() const {
  const auto name = version.empty() ? program : fmt::format("{} {}", program, version);
  if (oldest_protocol == protocol) return fmt::format("{} (protocol {})", name, protocol);
  return fmt::format("{} (protocols {} to {})", name, oldest_protocol, protocol);
}

ProgramVersion own_program(std::string program) {
  return {.program = std::move(program),
          .version = TIERPILOT_VERSION,
          .protocol = kProtocol,
          .oldest_protocol = kOldestProtocol,
          .features = {std::string(kGangFeature), std::string(kElasticFeature),
                       std::string(kCheckpointFeature), std::string(kShareFeature),
                       std::string(kQualityFeature), std::string(kGpuShareFeature),
                       std::string(kSwapRoomFeature)}};
}

ProgramVersion read_program(wire::Program::Reader from, const std::string& unnamed) {
  constexpr unsigned kMostFeatures = 256;
  ProgramVersion peer{.program = text(from.getProgram()), .version = text(from.getVersion())};
  if (peer.program.empty()) peer.program = unnamed;
  if (from.getProtocol() > 0) peer.protocol = from.getProtocol();
  if (from.getOldestProtocol() > 0) peer.oldest_protocol = from.getOldestProtocol();
  for (const auto feature : from.getFeatures())
    if (peer.features.size() < kMostFeatures) peer.features.insert(text(feature));
  return peer;
}

void write_program(const ProgramVersion& from, wire::Program::Builder to) {
  to.setProgram(from.program);
  to.setVersion(from.version);
  to.setProtocol(from.protocol);
  to.setOldestProtocol(from.oldest_protocol);
  auto features = to.initFeatures(static_cast<unsigned>(from.features.size()));
  unsigned i = 0;
  for (const auto& feature : from.features) features.set(i++, feature);
}

Status check_programs(const ProgramVersion& own, const ProgramVersion& other) {
  const bool own_is_older = own.protocol < other.oldest_protocol;
  if (!own_is_older && other.protocol >= own.oldest_protocol) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{} and {} do not understand each other: update {}", own.label(),
                          other.label(), own_is_older ? own.program : other.program));
}

}  // namespace tierpilot
