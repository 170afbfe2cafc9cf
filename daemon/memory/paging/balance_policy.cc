// Midhul Vuppalapati and Rachit Agarwal, "Tiered Memory Management: Access Latency is the Key!",
// SOSP '24 (Colloid): the share p of accesses that the faster tier gets is moved, halving an
// interval, towards the point where both tiers answer equally fast under load.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "daemon/memory/paging/planner.h"

namespace tierpilot {
namespace {

constexpr double kLevel = 0.05;      // latencies that differ less are level (the paper's delta)
constexpr double kNarrowest = 0.01;  // then the optimum has moved on: search anew (epsilon)

struct Shift {
  double share = 0;  // of all accesses, to be moved
  bool up = false;
};

// The paper's algorithm 1.
Shift find_shift(double p, double fast_ns, double slow_ns, BalanceState& state) {
  if (std::abs(fast_ns - slow_ns) < kLevel * fast_ns) return {};
  const bool up = fast_ns < slow_ns;
  (up ? state.low : state.high) = p;
  if (state.high < state.low + kNarrowest) {
    if (up)
      state.high = 1;
    else
      state.low = 0;
  }
  return {std::abs((state.low + state.high) / 2 - p), up};
}

struct Accesses {
  double all = 0, fast = 0;
};

Accesses count(const Planner& planner, const std::vector<size_t>& chunks) {
  Accesses accesses;
  for (const size_t chunk : chunks) {
    const uint64_t resident = planner.chunks()[chunk].resident_bytes();
    if (resident == 0) continue;
    const double heat = planner.heat_of(chunk);
    accesses.all += heat;
    accesses.fast += heat * static_cast<double>(planner.chunks()[chunk].bytes_in(0)) /
                     static_cast<double>(resident);
  }
  return accesses;
}

// Hottest first, as far as it fits: the fewest bytes for the share.
void shift_accesses(Planner& planner, const Shift& shift, double all) {
  const auto hottest = planner.by_heat(PagingPolicy::kBalance, true);
  auto evictable = planner.evictable(PagingPolicy::kBalance, 0);
  double left = shift.share * all;
  for (const size_t chunk : hottest) {
    const double heat = planner.heat_of(chunk);
    if (planner.has_moved(chunk) || heat == 0 || heat > left) continue;
    const bool above = planner.bytes_below(chunk, 0) == 0;
    if (above == shift.up) continue;
    const bool moved = shift.up ? planner.promote(chunk, 0, evictable, MoveReason::kLevelUp)
                                : planner.demote(chunk, 0, MoveReason::kLevelDown);
    if (moved) left -= heat;
  }
}

}  // namespace

void plan_balance(Planner& planner) {
  const auto chunks = planner.by_heat(PagingPolicy::kBalance, true);
  if (chunks.empty()) return;
  plan_excess(planner, PagingPolicy::kBalance);
  const auto& tiers = planner.input().tiers;
  for (size_t tier = 0; tier < 2; ++tier)
    if (!tiers[tier].loaded_latency_ns)
      return planner.note(fmt::format("balance: loaded latency of tier '{}' {}", tiers[tier].name,
                                      tiers[tier].loaded_latency_unavailable.empty()
                                          ? "is not known"
                                          : tiers[tier].loaded_latency_unavailable));
  const auto accesses = count(planner, chunks);
  if (accesses.all <= 0) return;
  BalanceState state = planner.input().balance;
  const Shift shift = find_shift(accesses.fast / accesses.all, *tiers[0].loaded_latency_ns,
                                 *tiers[1].loaded_latency_ns, state);
  planner.set_balance(state);
  if (shift.share > 0) shift_accesses(planner, shift, accesses.all);
}

}  // namespace tierpilot
