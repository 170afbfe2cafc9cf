// Runs a suite: every cell, seed and policy, in several threads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "policies/learning/guard.h"
#include "policies/sim/evaluation/guarded_policy.h"
#include "policies/sim/evaluation/suite.h"
#include "policies/sim/player.h"

namespace tierpilot::sim {

struct EvaluatedRun {
  size_t cell = 0;  // of the suite
  uint64_t seed = 0;
  std::string policy;
  RunResult result;  // responses_s and samples are kept for the first seed only
  // Of the mean response, for any policy on these tasks; nothing where not all of them succeeded,
  // as the response is of those that did.
  std::optional<double> bound_s{};
  std::optional<GuardTally> guard;  // where it ran under one
};

// The cluster without the rules that serve every policy: waiting tasks in the order of arrival,
// none kept back, data read by as many nodes at a time as want it.
ClusterSpec without_shared_rules(ClusterSpec cluster);
// What a heuristic is called that runs on such a cluster.
std::string plain_name(const std::string& heuristic);

struct EvaluationOptions {
  std::vector<std::string> policies;
  std::vector<std::string> plain;               // heuristics that also run without_shared_rules
  std::map<std::string, GuardSettings> guards;  // of policies that run under one
  uint32_t threads = 1;
  PlayerMaker make_player;  // called from all threads
  // Share of all runs that is done; by one thread at a time.
  std::function<void(double)> progress;
};

// By cell, seed, policy, whatever the number of threads.
Result<std::vector<EvaluatedRun>> evaluate(const Suite& suite, const EvaluationOptions& options);

// {"suite", "runs": [workload, nodes, policy, seed, each measure], "cells": [...], "overall":
// [...]} A run under a guard says what the guard did. For each cell and each policy of `judged`:
// the best of the other policies by mean response, the difference to it paired by seed, and the
// share of the bound.
nlohmann::ordered_json evaluation_json(const Suite& suite, const std::vector<EvaluatedRun>& runs,
                                       const std::vector<std::string>& judged);

}  // namespace tierpilot::sim
