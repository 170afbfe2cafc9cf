// What jobs reported, as much of it as one message to the coordinator carries.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/agent/job_channel/job_message.h"

namespace tierpilot::agent {

inline constexpr size_t kMostReportBytes = 2 << 20;  // of a message of at most 4 MiB

// Of too much: of each attempt the newest that its job said and the newest of what it used, later
// ones without their measures, and then none. `reports` of an attempt come in order.
std::vector<JobReport> bounded(std::vector<JobReport> reports, size_t most_bytes);

}  // namespace tierpilot::agent
