// Saves whose operators may still write them: they leave no sooner than those have returned.
#pragma once

#include <thread>
#include <vector>

#include "swap/slot_table.h"

namespace tierpilot::swap {

// Of a step's saves, which are few. Not thread-safe.
class UnfinishedSaves {
 public:
  // By an operator that this thread runs; `leaves`: once it is finished.
  void add(Id id, bool leaves);
  // Whether it is unfinished; then it leaves once it is finished.
  bool leaves_later(Id id);
  // The operators that this thread has run have returned: what leaves of their saves.
  std::vector<Id> finish();
  // It is no save any more.
  void forget(Id id);

 private:
  struct Save {
    Id id;
    std::thread::id thread;
    bool leaves;
  };
  std::vector<Save> saves_;
};

}  // namespace tierpilot::swap
