// An evaluation as the commands run and show it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "policies/sim/evaluation/evaluate.h"
#include "tools/lab/policies.h"
#include "tools/output/output.h"

namespace tierpilot::lab {

struct Contenders {
  std::vector<std::string> policies;
  std::vector<std::string> plain = {};  // heuristics: see sim::EvaluationOptions
};

struct Evaluated {
  sim::Suite suite;
  std::vector<std::string> policies;  // as they are shown, plain ones too
  std::vector<sim::EvaluatedRun> runs;
};

// With a bar on a terminal. `threads`: as many as the machine has CPUs unless given; `guarded`:
// policies that learn run under a guard with its defaults.
Result<Evaluated> run_suite(sim::Suite suite, const Contenders& contenders,
                            const sim::PlayerMaker& make, bool guarded,
                            std::optional<uint32_t> threads);

// evaluation_json with the policies that learn judged.
nlohmann::ordered_json evaluated_json(const Evaluated& evaluated);

// Means by cell, differences and the whole; warnings name tasks that did not succeed.
int show_evaluation(const Output& output, nlohmann::ordered_json value);

}  // namespace tierpilot::lab
