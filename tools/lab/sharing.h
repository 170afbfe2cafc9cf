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
// `policies` as in policies/sharing/live, and "clairvoyant"; empty: all.
int evaluate_shares_in_time(const Output& output, std::vector<std::string> policies,
                            uint32_t seeds);

}  // namespace tierpilot::lab
