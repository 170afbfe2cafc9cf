// What every placement policy is.
#pragma once

#include "policies/features.h"
#include "policies/values.h"

namespace tierpilot {

class Policy {
 public:
  virtual ~Policy() = default;
  // `seen` is the observation of `view`. A view without candidates gives Decision{kNoNode}.
  // Not thread-safe: a policy belongs to the one thread that decides.
  virtual Decision decide(const View& view, const Observation& seen) = 0;
};

}  // namespace tierpilot
