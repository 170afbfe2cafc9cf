#include "policies/sim/sharing/full_load/dual_feasible.h"

#include <set>

namespace tierpilot::sharing {
namespace {

template <class Value>
DualFeasible tabulated(Value value) {
  DualFeasible function;
  for (uint32_t milli = 0; milli <= kWholeUnit; ++milli) function[milli] = value(milli);
  return function;
}

}  // namespace

DualFeasible as_asked() {
  return tabulated([](uint32_t milli) { return static_cast<double>(milli) / kWholeUnit; });
}

DualFeasible cut_off(uint32_t step) {
  return tabulated([step](uint32_t milli) {
    if (milli + step > kWholeUnit) return 1.0;
    return milli < step ? 0.0 : static_cast<double>(milli) / kWholeUnit;
  });
}

DualFeasible in_steps(uint32_t step) {
  const uint32_t all = kWholeUnit / step;
  return tabulated([=](uint32_t milli) {
    if (2 * milli == kWholeUnit) return 0.5;
    const uint32_t steps =
        2 * milli < kWholeUnit ? milli / step : all - (kWholeUnit - milli) / step;
    return static_cast<double>(steps) / all;
  });
}

Violated most_taken(const SharesGiven& given) {
  // Values change only where shares begin to fit beside each other.
  std::set<uint32_t> steps;
  for (const auto& [milli, _] : given)
    for (const uint32_t step : {milli, kWholeUnit + 1 - milli})
      if (step > 0 && 2 * step <= kWholeUnit) steps.insert(step);
  Violated most;
  const auto consider = [&](const DualFeasible& function) {
    double units = 0;
    for (const auto& [milli, count] : given) units += function[milli] * count;
    if (units > most.units) most = {function, units};
  };
  consider(as_asked());
  for (const uint32_t step : steps) {
    consider(in_steps(step));
    consider(cut_off(step));
  }
  return most;
}

}  // namespace tierpilot::sharing
