// Policies for simulations, by name: as they are, with weights from a file, or as they learn during
// a run.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "policies/placement/registry.h"
#include "policies/sim/player.h"
#include "tools/output/output.h"

namespace tierpilot::lab {

struct PolicyOptions {
  std::string weights;  // of a policy that begins from some; empty: the shipped ones
  bool learn = false;
  std::string learning;  // file; empty: the defaults
};

// --weights, --learn and --learning.
void add_policy_options(CLI::App& command, PolicyOptions& options);

struct Policies {
  PlacementModules modules = placement_modules();
  bool learning = false;  // those that learn do so during each run, else they need weights

  // Any thread may call the result.
  sim::PlayerMaker maker() const;
  bool repeatable_in_threads(const std::vector<std::string>& names) const;
  // The weights that the first of these begins from, if one does.
  std::optional<WeightsOrigin> weights(const std::vector<std::string>& names) const;
};

// Those that cost little to run; `learners`: also what learns.
std::vector<std::string> usual_policies(bool learners);

// `option` is for messages.
Status each_once(const std::vector<std::string>& names, const std::string& option);

// Every name exists, can be made and is there once; `option` is for messages.
Result<Policies> open_policies(const std::vector<std::string>& names, const std::string& option,
                               const PolicyOptions& options);

// Says what of the options cannot be; kExitNotFound or kExitUsage.
int refuse(const Output& output, const Error& error);

}  // namespace tierpilot::lab
