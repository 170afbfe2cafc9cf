// The files and connections that this process has open.
#pragma once

#include <cstdint>

namespace tierpilot {

// First thing in a program: what is opened later must not take the number of a standard stream that
// its caller has closed, and be written to or read from in its place. Of such a stream each use
// fails.
void occupy_standard_streams();

uint64_t descriptor_limit();

// Raises the limit as far as it may, for children too, and returns it.
uint64_t raise_descriptor_limit();

}  // namespace tierpilot
