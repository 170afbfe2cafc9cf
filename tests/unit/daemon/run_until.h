// Runs an event loop until something holds there.
#pragma once

#include <functional>

#include "rpc/event_loop.h"

namespace tierpilot::agent {

// For a minute at most.
inline bool run_until(EventLoop& loop, const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    loop.detach(loop.after_ms(10).then([&loop] { loop.stop(); }), "looking again");
    loop.run();
  }
  return false;
}

}  // namespace tierpilot::agent
