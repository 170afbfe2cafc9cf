// A decision that was asked for.
#pragma once

#include <cstdint>
#include <memory>

#include "coordinator/core/decisions/oversight.h"
#include "coordinator/core/decisions/view.h"
#include "coordinator/policy_host/policy_host.h"

namespace tierpilot {

struct OpenDecision {
  // The same attempt may be decided again, when the node of the first decision went before it was
  // written down, and a late answer is not the new one's.
  uint64_t request = 0;
  AttemptId attempt;
  std::shared_ptr<const PlacementView> placement;
  Oversight::Turn turn;
  int64_t asked_ns = 0;        // boot time
  int64_t first_asked_ns = 0;  // before it was kept back

  const View& view() const { return placement->view; }
  // Shares `placement`.
  std::shared_ptr<const View> shared_view() const { return {placement, &placement->view}; }
};

// Not once another policy was chosen, or this one's mode or standing changed.
inline bool still_decides(const PolicyHost& host, const Oversight& oversight,
                          const Oversight::Turn& turn) {
  return turn.policy == host.active() && oversight.stands(turn);
}

}  // namespace tierpilot
