// What every placement policy is.
#pragma once

#include "policies/interface/values.h"

namespace tierpilot {

class Policy {
 public:
  virtual ~Policy() = default;
  // A view without candidates gives Decision{kNoNode}. Not thread-safe: one thread at a time may
  // ask.
  virtual Decision decide(const View& view) = 0;
  // True: where the view allows it, a task may be kept back for a full node (Decision::held_for).
  virtual bool holds() const { return false; }
  // Decisions have their scores and a reason unless this says that nobody will read them: on a
  // large cluster they cost more than a heuristic's choice.
  void explain(bool explain) { explains_ = explain; }

 protected:
  bool explains() const { return explains_; }

 private:
  bool explains_ = true;
};

}  // namespace tierpilot
