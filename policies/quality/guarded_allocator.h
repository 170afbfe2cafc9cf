// Holds an allocator against equal shares, by what its jobs report: while equal shares would have
// lowered their losses more, everybody has an equal share.
//
// What equal shares would have brought is estimated from what was measured. A job that lost x in n
// iterations would have lost x * r in those that its equal share is good for, where r is what the
// predictor says, held to what is true of any loss that falls ever slower: between 1 and the ratio
// of the iterations. So a predictor that is wrong cannot speak for itself.
#pragma once

#include <memory>

#include "policies/quality/allocator.h"

namespace tierpilot::quality {

struct GuardSettings {
  double block_s = 20;          // losses are compared over at least so long, noise goes up and down
  size_t least_blocks = 4;      // before anything is concluded
  size_t most_blocks = 12;      // older ones are forgotten
  double worse_by = 0.05;       // of what was lost; less does not matter
  double sure_at = 2;           // standard errors of the mean
  size_t fallback_blocks = 10;  // then it is tried again; twice as many each time
  size_t most_fallback_blocks = 160;
};

std::unique_ptr<Allocator> make_guarded(std::unique_ptr<Allocator> guarded,
                                        const GuardSettings& settings = {});

}  // namespace tierpilot::quality
