// The suite of tierctl policy evaluate on which policies share units (policies/sharing).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/output/output.h"

namespace tierpilot::lab {

inline constexpr const char* kSharingSuite = "sharing";

struct SharingOptions {
  std::vector<std::string> policies;  // empty: all
  std::string pods, nodes;            // files; empty: generated ones
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;
};

struct SharingInTimeOptions {
  std::vector<std::string> policies;  // of sharing::timed_policies(); empty: all
  std::string pods, nodes, trace;     // files; all empty: jobs are drawn
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;
  std::optional<double> load;
  std::optional<uint32_t> jobs;
};

int evaluate_sharing(const Output& output, SharingOptions options);
int evaluate_shares_in_time(const Output& output, const SharingInTimeOptions& options);

}  // namespace tierpilot::lab
