// A simulated cluster is larger than the caches, and what an event touches is spread all over it:
// most of a run's time would be waiting for memory. What will be touched is asked for ahead.
#pragma once

#include <cstddef>

namespace tierpilot::sim {

// All of the object's cache lines.
template <class T>
void prefetch(const T& object) {
  constexpr size_t kLine = 64;
  const auto* first = reinterpret_cast<const char*>(&object);
  for (size_t at = 0; at < sizeof(T); at += kLine) __builtin_prefetch(first + at);
  if constexpr (alignof(T) < kLine) __builtin_prefetch(first + sizeof(T) - 1);
  asm volatile("");  // or gcc takes a function that only prefetches for one that does nothing
}

}  // namespace tierpilot::sim
