// Which tiers there are, and how fast: said by the user or found, then measured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policies/swap/link/link.h"
#include "swap/device/compute_device.h"

namespace tierpilot::swap {

struct MeasuredTier {
  std::unique_ptr<Tier> tier;
  double read_gb_per_s = 0, write_gb_per_s = 0;  // of large copies, in 1e9 bytes a second
  int64_t latency_ns = 0;                        // of reading 4 KiB, the median

  Link link() const;
};

// "node1=2GiB,dir:/srv/slow=16GiB"; messages name the entry that is wrong.
// Of what the list says one of `parts` is used.
Result<std::vector<std::unique_ptr<Tier>>> tiers_of(std::string_view list,
                                                    MemoryPages pages = MemoryPages::kShared,
                                                    int parts = 1);
MemoryPages pages_for(const ComputeDevice& device);

// The host's memory, where the device has its own; NUMA nodes that this process does not run on;
// and TIERPILOT_SWAP_DIR or /var/tmp. One of `parts` of half of what is free of each, and of what
// the process's cgroups leave it beside `host_bytes`, which the device takes of the host's memory.
Result<std::vector<std::unique_ptr<Tier>>> found_tiers(const ComputeDevice& device, int parts = 1,
                                                       int64_t host_bytes = 0);

// Fast to slow by the time of a copy out of the device and back. A tier that fails here is left
// out; kUnavailable when none is left.
Result<std::vector<MeasuredTier>> measured(std::vector<std::unique_ptr<Tier>> tiers,
                                           ComputeDevice& device);

// Of tiers from which no memory is gained; empty: of none.
std::string warning_about(const std::vector<MeasuredTier>& tiers);

// What copying within the process's own memory reaches, in GB/s.
double memory_gb_per_s();

}  // namespace tierpilot::swap
