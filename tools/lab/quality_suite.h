// The suite "quality" of tierctl policy evaluate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/sim/quality/training_world.h"
#include "tools/output/output.h"

namespace tierpilot::lab {

inline constexpr const char* kQualitySuite = "quality";

struct QualitySuiteOptions {
  std::string curves;                 // CSV or a folder of them; empty: seeded ones
  std::string trace;                  // like Philly's, whose rhythm jobs arrive in; empty: Poisson
  std::vector<std::string> cells;     // empty: all
  std::vector<std::string> policies;  // empty: all allocators
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;
  std::optional<uint32_t> threads;  // default: as many as there are CPUs
};

// Returns an ExitCode, as the next one does. Those cells in place of the suite's.
int run_training_cells(const Output& output, std::vector<sim::TrainingCell> cells,
                       const QualitySuiteOptions& options);
int run_quality_suite(const Output& output, const QualitySuiteOptions& options);

}  // namespace tierpilot::lab
