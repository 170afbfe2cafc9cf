// Where weights come from.
#pragma once

#include <cstdint>
#include <string>

namespace tierpilot {

struct Provenance {
  std::string command;        // that made them
  std::string config_digest;  // of all its settings
  uint64_t seed = 0;
  std::string program_version;
  std::string evaluation;  // JSON

  bool operator==(const Provenance&) const = default;
};

struct WeightsOrigin {
  uint64_t version = 0;
  Provenance provenance;
};

}  // namespace tierpilot
