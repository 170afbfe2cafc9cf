// Allocators besides the default.
#pragma once

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

std::unique_ptr<Allocator> make_fair(bool weighted);
// One unit each, by arrival where they do not suffice; then unit by unit to whom it is predicted to
// lower the normalised loss most in the next period (Liu et al. 2019, after SLAQ, SoCC 2017). A
// unit is a whole core at least.
std::unique_ptr<Allocator> make_quality_published();
// All that it can use to the job with the shortest predicted remaining time, and so on.
std::unique_ptr<Allocator> make_srtf();
// Each unit to whom it speeds up most.
std::unique_ptr<Allocator> make_max_throughput();

}  // namespace tierpilot::quality
