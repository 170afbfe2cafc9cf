// Launches that wait for their turn, and behind them what else is for their tasks, in order.
#pragma once

#include <cstddef>
#include <deque>

#include "daemon/exec/messages.h"

namespace tierpilot {

class WaitingOrders {
 public:
  // False: it can be obeyed at once, before all that waits.
  bool delays(const ExecMessage& order) const;
  void push(ExecMessage order);
  // The oldest; there is one.
  ExecMessage pop();
  bool empty() const { return orders_.empty(); }
  // What comes then is left where it is until there is room.
  bool full() const { return bytes_ >= kMostBytes; }
  void clear();

 private:
  static constexpr size_t kMostBytes = 64 << 20;  // about, by what users may make large

  std::deque<ExecMessage> orders_;
  size_t bytes_ = 0;
};

}  // namespace tierpilot
