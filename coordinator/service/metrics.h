// The coordinator's figures for Prometheus. Series do not grow with nodes, tasks, datasets or
// users.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/service/core.h"

namespace tierpilot {

std::string coordinator_metrics(const Core& core, uint64_t rejected_frames);

}  // namespace tierpilot
