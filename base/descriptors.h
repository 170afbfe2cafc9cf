// How many files and connections this process may have open.
#pragma once

#include <cstdint>

namespace tierpilot {

uint64_t descriptor_limit();

// Raises the limit as far as it may, for children too, and returns it.
uint64_t raise_descriptor_limit();

}  // namespace tierpilot
