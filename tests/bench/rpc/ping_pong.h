// The floor: bytes to and fro over a Unix socket, two threads that block, nothing else.
#pragma once

#include <cstddef>

#include "base/histogram.h"

namespace tierpilot::bench {

// Round-trip times in ns, a byte each way.
Histogram socket_ping_pong_ns(int round_trips);

// A byte asks, `answer_bytes` answer, each in a write of its own; `window` of them on their way.
double socket_answers_per_s(int count, int window, size_t answer_bytes);

}  // namespace tierpilot::bench
