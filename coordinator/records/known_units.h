// What is known of compute units, as it stands in the store.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tierpilot {

struct UnitFailure {
  int64_t at_ms = 0;  // wall time
  std::string unit;
  std::string kind;    // signal 9, node lost, ...
  uint64_t task = 0;   // of the gang; 0: the device failed by itself, whoever had it
  std::string told{};  // see told_as(); empty: no daemon tells it
};

struct KnownUnits {
  std::map<std::string, int64_t> since_ms;    // in service
  std::vector<UnitFailure> failures;          // by time
  std::map<std::string, std::string> drains;  // why
};

}  // namespace tierpilot
