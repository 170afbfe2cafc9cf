// Equal shares, as far as each can use them.
#pragma once

#include <span>
#include <vector>

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

// Max-min fair by weight (progressive filling; Bertsekas and Gallager, Data Networks): nobody gets
// more than max_cores, and what is left goes to the others.
std::vector<double> fair_shares(std::span<const JobState> jobs, double total, bool weighted);

}  // namespace tierpilot::quality
