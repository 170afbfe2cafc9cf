// tierctl policy evaluate --suite gangs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/sim/gang/published_training.h"
#include "tools/lab/command.h"

namespace tierpilot::lab {

inline constexpr const char* kGangSuite = "gangs";

struct GangOptions {
  std::string trace;   // file in the manner of Philly's; empty: jobs are made up
  std::string record;  // of a fleet's faults, to be replayed; empty: they are drawn
  std::optional<uint32_t> record_nodes;
  std::string compared;  // ac or ac-published: ways to train it; empty: the suite
  uint32_t max_units = 1024;
  std::optional<uint32_t> seeds, threads;
  uint64_t first_seed = 1001;
  std::vector<std::string> policies;  // empty: all but ac-published
  std::string weights;                // of ac; empty: the shipped ones
  double repair_h = 32;
  double restart_h = 0.1;
  gang::PublishedSettings published;
  uint32_t workloads = 60;  // that ac-published learns from, for each row and seed
};

int evaluate_gangs(const Output& output, const GangOptions& options);

}  // namespace tierpilot::lab
