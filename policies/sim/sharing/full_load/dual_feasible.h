// How much of a unit a share takes from others, counted so that gaps nobody can fill are counted
// too.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "policies/sharing/share.h"

namespace tierpilot::sharing {

// By thousandths of a unit. Dual feasible: shares that fit on a unit together have values of at
// most 1 together, so that values of what is on all units are at most their number.
using DualFeasible = std::array<double, kWholeUnit + 1>;

// The share itself.
DualFeasible as_asked();
// More than 1 - step counts as a whole unit, less than a step as nothing: U^(e) of "New Classes of
// Fast Lower Bounds for Bin Packing Problems" (Fekete and Schepers, Mathematical Programming 91,
// 2001). Steps: 1 to half a unit, thousandths.
DualFeasible cut_off(uint32_t step);
// In whole steps, of what is above a half by what it leaves: f_CCM,1 in "A Survey of Dual-Feasible
// and Superadditive Functions" (Clautiaux, Alves and Valerio de Carvalho, Annals of Operations
// Research 179, 2010). Steps as above.
DualFeasible in_steps(uint32_t step);

// How many shares there are of so many thousandths.
using SharesGiven = std::map<uint32_t, double>;

struct Violated {
  DualFeasible function = as_asked();
  double units = 0;  // that shares take by it
};
// The function by which they take most.
Violated most_taken(const SharesGiven& given);

}  // namespace tierpilot::sharing
