#include "daemon/memory/paging/planner.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

// Of a group without a budget; adding to it does not overflow.
constexpr uint64_t kUnbounded = UINT64_MAX / 2;

double pages(uint64_t bytes, uint32_t page_bytes) {
  return static_cast<double>(bytes) / page_bytes;
}

}  // namespace

Planner::Planner(const PagingInput& input)
    : input_(input),
      units_(input.chunks),
      moved_(input.chunks.size(), false),
      group_fast_bytes_(input.groups.size(), 0),
      move_budget_(input.limits.move_bytes) {
  for (const auto& tier : input.tiers) free_bytes_.push_back(static_cast<int64_t>(tier.free_bytes));
  for (const auto& chunk : units_) group_fast_bytes_[chunk.group] += chunk.bytes_in(0);
  plan_.balance = input.balance;
}

uint64_t Planner::bytes_below(size_t chunk, size_t tier) const {
  uint64_t bytes = 0;
  for (size_t t = tier + 1; t < input_.tiers.size(); ++t) bytes += units_[chunk].bytes_in(t);
  return bytes;
}

uint64_t Planner::bytes_above(size_t chunk, size_t tier) const {
  uint64_t bytes = 0;
  for (size_t t = 0; t < tier; ++t) bytes += units_[chunk].bytes_in(t);
  return bytes;
}

uint64_t Planner::room_in(size_t tier) const {
  const double reserve =
      input_.limits.reserve_share * static_cast<double>(input_.tiers[tier].capacity_bytes);
  return static_cast<uint64_t>(
      std::max<int64_t>(free_bytes_[tier] - static_cast<int64_t>(reserve), 0));
}

uint64_t Planner::room_in_budget(size_t group, size_t tier) const {
  const auto budget = input_.groups[group].fast_budget_bytes;
  if (tier != 0 || !budget) return kUnbounded;
  const uint64_t used = group_fast_bytes_[group];
  return *budget > used ? *budget - used : 0;
}

uint64_t Planner::group_excess(size_t group) const {
  const auto budget = input_.groups[group].fast_budget_bytes;
  return budget && group_fast_bytes_[group] > *budget ? group_fast_bytes_[group] - *budget : 0;
}

void Planner::move(size_t index, size_t tier, MoveReason reason) {
  PagingChunk& chunk = units_[index];
  PageMove move{.group = chunk.group,
                .pid = chunk.pid,
                .start = chunk.start,
                .end = chunk.end,
                .page_bytes = chunk.page_bytes,
                .to_tier = tier,
                .from_tier = tier,
                .heat = chunk.heat,
                .reason = reason};
  uint64_t most = 0;
  for (size_t from = 0; from < input_.tiers.size(); ++from) {
    const uint64_t bytes = chunk.bytes_in(from);
    if (from == tier || bytes == 0) continue;
    if (bytes > most) {
      most = bytes;
      move.from_tier = from;
    }
    move.bytes += bytes;
    move.gain_ns_per_s += pages(bytes, chunk.page_bytes) * chunk.heat *
                          (input_.tiers[from].latency_ns - input_.tiers[tier].latency_ns);
    free_bytes_[from] += static_cast<int64_t>(bytes);
    chunk.pages_in_tier[tier] += std::exchange(chunk.pages_in_tier[from], 0);
  }
  free_bytes_[tier] -= static_cast<int64_t>(move.bytes);
  if (tier == 0) group_fast_bytes_[chunk.group] += move.bytes;
  if (tier != 0) group_fast_bytes_[chunk.group] -= input_.chunks[index].bytes_in(0);
  move_budget_ -= std::min(move_budget_, move.bytes);
  moved_[index] = true;
  plan_.moves.push_back(move);
}

std::vector<size_t> Planner::by_heat(PagingPolicy policy, bool hottest_first) const {
  std::vector<size_t> order;
  for (size_t i = 0; i < units_.size(); ++i)
    if (input_.groups[units_[i].group].policy == policy && units_[i].heat_known) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return hottest_first ? units_[a].heat > units_[b].heat : units_[a].heat < units_[b].heat;
  });
  return order;
}

std::optional<std::vector<size_t>> Planner::find_victims(
    size_t index, size_t tier, const std::vector<size_t>& coldest_first) const {
  const PagingChunk& hot = units_[index];
  const uint64_t need = bytes_below(index, tier);
  uint64_t tier_room = room_in(tier), budget_room = room_in_budget(hot.group, tier), evicted = 0;
  std::vector<size_t> victims;
  // Room in a group's budget only the group itself can make, room in the tier everybody.
  for (const bool own : {true, false})
    for (const size_t v : coldest_first) {
      if ((own ? budget_room : tier_room) >= need || need + evicted > move_budget_) break;
      const PagingChunk& cold = units_[v];
      if (!outranks(hot, cold)) break;
      const uint64_t bytes = cold.bytes_in(tier);
      const bool same = cold.group == hot.group;
      if (v == index || moved_[v] || bytes == 0 || (own && !same)) continue;
      if (std::find(victims.begin(), victims.end(), v) != victims.end()) continue;
      const auto below = tier_below(v, tier);
      if (!below) continue;
      victims.push_back(v);
      evicted += bytes_above(v, *below);
      tier_room += bytes;
      if (same) budget_room += bytes;
    }
  const bool enough = tier_room >= need && budget_room >= need && need + evicted <= move_budget_;
  if (!enough) return {};
  return victims;
}

bool Planner::promote(size_t index, size_t tier, const std::vector<size_t>& coldest_first,
                      MoveReason reason) {
  if (bytes_above(index, tier) > 0) return false;
  const auto victims = find_victims(index, tier, coldest_first);
  if (!victims) return false;
  // Those before may have taken the room that was left below.
  for (const size_t v : *victims)
    if (!demote(v, tier, MoveReason::kMakeRoom)) return false;
  move(index, tier, reason);
  return true;
}

bool Planner::outranks(const PagingChunk& hot, const PagingChunk& cold) const {
  const double chance = input_.limits.significance * std::hypot(hot.heat_error, cold.heat_error);
  return hot.heat > cold.heat * (1 + input_.limits.hysteresis) + chance;
}

std::optional<size_t> Planner::tier_below(size_t chunk, size_t tier) const {
  for (size_t t = tier + 1; t < input_.tiers.size(); ++t)
    if (bytes_below(chunk, t) == 0 && room_in(t) >= bytes_above(chunk, t)) return t;
  return {};
}

bool Planner::demote(size_t index, size_t tier, MoveReason reason) {
  const auto below = tier_below(index, tier);
  if (!below || bytes_above(index, *below) > move_budget_) return false;
  move(index, *below, reason);
  return true;
}

double Planner::heat_of(size_t index) const {
  const PagingChunk& chunk = units_[index];
  return chunk.heat * pages(chunk.resident_bytes(), chunk.page_bytes);
}

}  // namespace tierpilot
