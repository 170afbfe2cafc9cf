// Which program of which version speaks, and whether two of them understand each other.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rpc/node.capnp.h"

namespace tierpilot {

// Rises when a peer of the number before would misunderstand what is said. What it would only not
// know of is a feature.
inline constexpr uint16_t kProtocol = 2;
// The oldest that is still understood. Programs that tell no number speak 1.
inline constexpr uint16_t kOldestProtocol = 1;

// Features: a peer that does not name one is not asked for it.
inline constexpr std::string_view kGangFeature = "gangs";
inline constexpr std::string_view kElasticFeature = "elastic";
inline constexpr std::string_view kCheckpointFeature = "checkpoints";
inline constexpr std::string_view kShareFeature = "shares";
inline constexpr std::string_view kQualityFeature = "quality-goals";
inline constexpr std::string_view kGpuShareFeature = "gpu-shares";
inline constexpr std::string_view kSwapRoomFeature = "swap-room";

struct ProgramVersion {
  std::string program;  // tierpilotd, tierpilot-coordinator, tierctl, ...
  std::string version;
  uint16_t protocol = 1;
  uint16_t oldest_protocol = 1;
  std::set<std::string, std::less<>> features;

  bool can(std::string_view feature) const { return features.contains(feature); }
  // "tierpilotd 0.1.0 (protocols 1 to 2)"
  std::string label() const;
};

// What this build can.
ProgramVersion own_program(std::string program);
// `unnamed`: what a peer that does not tell is called.
ProgramVersion read_program(wire::Program::Reader from, const std::string& unnamed);
void write_program(const ProgramVersion& from, wire::Program::Builder to);

// kInvalid names both, and which is to be updated.
Status check_programs(const ProgramVersion& own, const ProgramVersion& other);

}  // namespace tierpilot
