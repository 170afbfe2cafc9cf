// Who uses what of each GPU, from the driver and from /proc.
#pragma once

#include <nlohmann/json.hpp>

#include "base/sysroot.h"
#include "daemon/topology/nvml.h"

namespace tierpilot::tiertool {

// {"gpus": [{"gpu", "uuid", "name", "utilisation", "memory_used_bytes", "memory_total_bytes",
// "temperature_c", "power_w", "compute_capability", "cores", "sm_clock_mhz", "memory_clock_mhz",
// "bus_width_bits"}], "processes": [{"gpu", "pid", "command", "user", "task",
// "memory_bytes", "sm", "mps"}], "warnings": [...]}. What is not known is null. A task is told by
// the environment of its process, which only its user and root may read.
Result<nlohmann::ordered_json> read_gpus(const Nvml& nvml, const Sysroot& sysroot);

}  // namespace tierpilot::tiertool
