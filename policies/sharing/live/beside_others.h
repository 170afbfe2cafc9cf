// `share`: where a job starts beside those that are there, which lose nothing but speed for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/sharing/live/kept_apart.h"
#include "policies/sharing/live/neighbours.h"

namespace tierpilot::sharing {

// What a job that waits would be given of a unit, at least and if there is room.
struct Wish {
  uint32_t least = 0;
  uint32_t whole = 0;
};

// `retained` of its speed; `aim`: see needed_share.h.
Wish wish_for(const WaitingJob& job, const Predicted& predicted, double retained, double aim);
Needed needed_for(const WaitingJob& job, const Predicted& predicted);
// Null: units of the type will not do.
const Predicted* predicted_on(const WaitingJob& job, const LiveUnit& unit);

// Where it adds the most to the sum of speeds; of equals where the least is left.
std::optional<Start> beside_others(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                   const Retained& retained, const KeptApart& apart);
// Of what best-effort jobs have beyond what was asked for them, as they used it, and give back.
std::optional<Start> of_what_is_lent(const std::vector<LiveNode>& nodes, const WaitingJob& job,
                                     const Retained& retained, const KeptApart& apart);
// Why it does not start there by what is thought, also on what is lent; empty: it may.
std::string refused_beside_others(const LiveUnit& unit, const WaitingJob& job,
                                  const Retained& retained);

}  // namespace tierpilot::sharing
