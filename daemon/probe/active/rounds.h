// How often to go round, when there is only so much time.
#pragma once

#include <algorithm>
#include <chrono>

namespace tierpilot {

// next() says whether another round would still end in time, judged by the ones before; the first
// one always does.
class Rounds {
 public:
  using Clock = std::chrono::steady_clock;
  Rounds(int wanted, Clock::time_point deadline) : wanted_(wanted), deadline_(deadline) {}

  bool next() {
    const auto now = Clock::now();
    if (done_ > 0) longest_ = std::max(longest_, now - last_);
    if (done_ == wanted_ || (done_ > 0 && now + longest_ > deadline_)) return false;
    last_ = now;
    ++done_;
    return true;
  }

 private:
  const int wanted_;
  const Clock::time_point deadline_;
  int done_ = 0;
  Clock::duration longest_{};
  Clock::time_point last_;
};

}  // namespace tierpilot
