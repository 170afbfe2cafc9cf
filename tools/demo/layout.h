// Who runs where in the demonstration: folders, addresses, cores and budgets, and the daemons'
// configuration files. A plain value; nothing is touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot::demo {

struct LayoutOptions {
  std::filesystem::path folder;       // sockets, state, logs, slow tiers
  std::filesystem::path fast_folder;  // fast tiers
  std::vector<int> cpus;              // that this process may use
  uint64_t fast_budget_bytes = 0;     // of each node
  uint64_t slow_budget_bytes = 0;
  size_t nodes = 3;
  uint64_t seed = 1;
  std::filesystem::path weights;  // that the dqn starts from; empty: none
  uint32_t units = 0;             // of each node; 0: one for each of its CPUs
  int64_t lease_ms = 10'000;      // short enough to lose a killed node within the demonstration,
                                  // long enough for a loaded machine
  std::string policy = "random";  // at the start
  std::string coordinator_more{}, node_more{};  // further sections of their configuration
};

struct NodePlan {
  std::string name;
  std::vector<int> cpus;
  uint32_t units;
  std::filesystem::path config, log;
  std::string config_text;
  std::vector<std::string> env{};  // NAME=VALUE, beside what its daemon inherits
};

struct Layout {
  std::string address;  // of the coordinator
  std::filesystem::path coordinator_config, coordinator_log;
  std::string coordinator_config_text;
  std::vector<NodePlan> nodes;
  std::vector<std::filesystem::path> folders;  // to be made before the daemons start
};

// The CPUs that this process may use.
std::vector<int> usable_cpus();

// The CPUs are split evenly; with fewer CPUs than nodes all nodes share all of them.
Layout make_layout(const LayoutOptions& options);

// Makes the folders and writes the configuration files.
Status write_layout(const Layout& layout);

}  // namespace tierpilot::demo
