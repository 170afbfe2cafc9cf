// Runs work in a forked child that reports lines of text while it goes.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

using LineSink = std::function<void(std::string_view line)>;

// `work` runs in the child, which ends without running the parent's exit handlers; every line it
// hands to its sink arrives at `on_line` in the caller, in order, also when the child dies later.
// kTimeout when it was stopped at the deadline, kIo when it died or could not be started. The child
// is gone when this returns, and dies with the calling thread.
Status run_in_child(const std::function<void(const LineSink&)>& work,
                    std::chrono::milliseconds timeout, const LineSink& on_line);

}  // namespace tierpilot
