// What the benchmark measures in one round over one transport.
#pragma once

#include <cstddef>

#include "rpc/event_loop.h"
#include "tests/rpc/echo.capnp.h"

namespace tierpilot::bench {

inline constexpr size_t kChunkBytes = 1 << 20;
inline constexpr int kChunksOnTheirWay = 4;
// A window, as a real caller keeps one: no more answers are outstanding than this.
inline constexpr int kCallsOnTheirWay = 256;

struct Sizes {
  int round_trips;
  int pipelined_calls;
  int chunks;
};

struct Round {
  double p50_us = 0, p99_us = 0;  // one call at a time
  // kCallsOnTheirWay at a time; CPU time is that of client and server together.
  double calls_per_s = 0, cpu_us_per_call = 0;
  // Answers of kChunkBytes.
  double chunk_gb_per_s = 0, cpu_us_per_chunk = 0;
};

Round measure_round(EventLoop& loop, test::Echo::Client client, const Sizes& sizes);

}  // namespace tierpilot::bench
