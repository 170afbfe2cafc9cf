// Which memory tiers this machine could offer: its nodes with memory, and directories to allocate
// file-backed memory from. Nothing is measured here; see daemon/probe/active.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/topology/topology.h"

namespace tierpilot {

struct TierSpec {
  std::string name;       // "dram0", "cxl2": kind and node id; "directory0": by order given
  std::string kind;       // "dram" (a node with CPUs), "cxl", "pmem", "memory" (no CPUs, origin
                          // unknown), "directory"
  int numa_node = -1;     // -1 for a directory
  std::string directory;  // empty for a node
  uint64_t capacity_bytes = 0;  // all of a node's memory; what is free now in a directory

  bool is_directory() const { return numa_node < 0; }
};

// Nodes with CPUs, then others, each by id, then directories in the order given. kNotFound,
// kInvalid or kDenied for a directory that does not exist, is not one, or cannot be written to.
// Directories are of the running machine.
Result<std::vector<TierSpec>> candidate_tiers(const Topology& topology,
                                              const std::vector<std::string>& directories);

}  // namespace tierpilot
