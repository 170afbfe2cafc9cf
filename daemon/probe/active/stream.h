// Streaming bandwidth: every byte read once, or written once past the caches where the CPU can.
#pragma once

#include <cstddef>

namespace tierpilot {

// One pass over the range, shared out over threads. Bytes per second.
double read_bytes_per_s(const std::byte* data, size_t bytes, int threads);
double write_bytes_per_s(std::byte* data, size_t bytes, int threads);

}  // namespace tierpilot
