// What the benchmark measures in one round over one transport.
#pragma once

#include "rpc/event_loop.h"
#include "tests/rpc/echo.capnp.h"

namespace tierpilot::bench {

struct Sizes {
  int round_trips;
  int pipelined_calls;
  int chunks;  // of 1 MiB
};

struct Round {
  double p50_us = 0, p99_us = 0;  // one call at a time
  // Pipelined; CPU time is that of client and server together.
  double calls_per_s = 0, cpu_us_per_call = 0;
  // Answers of 1 MiB, four on their way at a time.
  double chunk_gb_per_s = 0, cpu_us_per_chunk = 0;
};

Round measure_round(EventLoop& loop, test::Echo::Client client, const Sizes& sizes);

}  // namespace tierpilot::bench
