// The suite of tierctl policy evaluate on which policies share units (policies/sharing).
#pragma once

#include <string>
#include <vector>

#include "tools/output/output.h"

namespace tierpilot::lab {

inline constexpr const char* kSharingSuite = "sharing";

struct SharingOptions {
  std::vector<std::string> policies;  // empty: all
  std::string pods, nodes;            // files; empty: generated ones
  uint32_t seeds = 10;
};

int evaluate_sharing(const Output& output, SharingOptions options);

}  // namespace tierpilot::lab
