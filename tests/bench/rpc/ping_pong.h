// The floor: one byte to and fro over a Unix socket, two threads that block, nothing else.
#pragma once

#include "base/histogram.h"

namespace tierpilot::bench {

// Round-trip times in ns.
Histogram socket_ping_pong_ns(int round_trips);

}  // namespace tierpilot::bench
