// Streaming bandwidth: every byte read once, or written once past the caches where the CPU can.
#pragma once

#include <cstddef>

namespace tierpilot {

// One pass over the range, shared out over threads. Bytes per second.
double read_bytes_per_s(const std::byte* data, size_t bytes, int threads);
double write_bytes_per_s(std::byte* data, size_t bytes, int threads);
// Bytes copied: each is read once and written once.
double copy_bytes_per_s(std::byte* to, const std::byte* from, size_t bytes, int threads);

// One pass by the calling thread, untimed. `data` at a cache line's start: std::logic_error.
void read_once(const std::byte* data, size_t bytes);

// What each of `parts` gets of the range, so that each begins where its vectors want to.
constexpr size_t aligned_share(size_t bytes, size_t parts) {
  constexpr size_t kStep = 256;  // four vectors
  return bytes / parts / kStep * kStep;
}

}  // namespace tierpilot
