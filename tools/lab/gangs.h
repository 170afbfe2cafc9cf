// tierctl policy evaluate --suite gangs.
#pragma once

#include <optional>
#include <string>

#include "tools/lab/command.h"

namespace tierpilot::lab {

struct GangOptions {
  std::string trace;  // file in the manner of Philly's; empty: jobs are made up
  uint32_t max_units = 1024;
  std::optional<uint32_t> seeds, threads;
};

int evaluate_gangs(const Output& output, const GangOptions& options);

}  // namespace tierpilot::lab
