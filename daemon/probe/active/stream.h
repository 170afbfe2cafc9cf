// Streaming bandwidth: every byte read once, or written once past the caches where the CPU can.
#pragma once

#include <cstddef>

namespace tierpilot {

// One pass over the range, shared out over threads. Bytes per second.
double read_bytes_per_s(const std::byte* data, size_t bytes, int threads);
double write_bytes_per_s(std::byte* data, size_t bytes, int threads);
// Bytes copied: each is read once and written once.
double copy_bytes_per_s(std::byte* to, const std::byte* from, size_t bytes, int threads);

// One pass by the calling thread, untimed.
void read_once(const std::byte* data, size_t bytes);

}  // namespace tierpilot
