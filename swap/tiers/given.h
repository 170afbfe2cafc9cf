// What the environment gives a program, which workers that torchrun starts divide among them: all
// have the environment of the one program that was given it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "swap/device/compute_device.h"

namespace tierpilot::swap {

// How many processes of this program compute on this machine: LOCAL_WORLD_SIZE of torchrun, else 1.
// The ranks of a gang, where its node sets that variable, were each given their own.
int workers_of_this_program();

// This worker's part of TIERPILOT_SWAP_BUDGET. kInvalid: it is not set, or no size.
Result<int64_t> given_budget_bytes(const ComputeDevice& device, int workers);

// Its part of TIERPILOT_SWAP_TIERS, or without that of the tiers that are found beside what the
// device takes of the host's memory.
Result<std::vector<std::unique_ptr<Tier>>> given_tiers(const ComputeDevice& device, int workers,
                                                       int64_t host_bytes);

}  // namespace tierpilot::swap
