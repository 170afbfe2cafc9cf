// The elements of a BPF map as text, by its BTF where it has some.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot {

struct MapElement {
  std::string key;
  std::string value;  // of a per-CPU map: "cpu0: ..., cpu1: ...", CPUs of zeros left out
};

struct MapDump {
  std::vector<MapElement> elements;
  bool truncated = false;  // more than `limit`
};

// Only looks at elements; a ring buffer has none to look at (kUnavailable).
Result<MapDump> dump_map(uint32_t id, size_t limit = 1024);

// "[0,0,0,0,0,7,0]" as "[0 x5,7,0]": a histogram has hundreds of empty buckets.
std::string shorten_zeros(const std::string& text);
// "de ad be ef"
std::string hex_text(const std::vector<uint8_t>& bytes);

}  // namespace tierpilot
