// Policies for simulations, by name: the dqn with weights from a file, those that learn with what
// they learn during a run.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policies/placement/dqn/weights.h"
#include "policies/placement/registry.h"
#include "policies/sim/player.h"
#include "tools/output/output.h"

namespace tierpilot::lab {

struct PolicyOptions {
  std::string weights;  // of the dqn; empty: the shipped ones
  bool learn = false;
  std::string learning;  // file; empty: the defaults
};

// --weights, --learn and --learning.
void add_policy_options(CLI::App& command, PolicyOptions& options);

// How policies learn, and from where.
struct Learning {
  DqnSettings dqn;
  PublishedSettings published;
};

struct Policies {
  std::shared_ptr<const WeightsFile> weights;  // null: no policy needs them, or they are not wanted
  std::optional<Learning> learning;

  // Any thread may call the result. A policy that does not learn during the run needs weights.
  sim::PlayerMaker maker() const;
  // dqn-published draws from a generator that the whole process shares, so its runs are repeatable
  // only one after the other.
  bool repeatable_in_threads(const std::vector<std::string>& names) const;
};

// Every name exists, can be made and is there once; `option` is for messages.
Result<Policies> open_policies(const std::vector<std::string>& names, const std::string& option,
                               const PolicyOptions& options);

// Says what of the options cannot be; kExitNotFound or kExitUsage.
int refuse(const Output& output, const Error& error);

}  // namespace tierpilot::lab
