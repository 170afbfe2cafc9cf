#include "daemon/memory/paging/planner.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

// Of a group without a budget; adding to it does not overflow.
constexpr uint64_t kUnbounded = UINT64_MAX / 2;
// Of victims that find no room below, for one chunk.
constexpr size_t kMostMisses = 64;

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

Evictable Planner::evictable(PagingPolicy policy, size_t tier) const {
  Evictable found;
  for (const size_t chunk : by_heat(policy, false)) {
    if (moved_[chunk] || units_[chunk].bytes_in(tier) == 0) continue;
    found.all.push_back(chunk);
    found.of_group[units_[chunk].group].push_back(chunk);
  }
  return found;
}

struct Planner::Wanted {
  size_t hot;
  size_t tier;
  uint64_t need;
  uint64_t tier_room;
  uint64_t budget_room;
  uint64_t evicted = 0;
  std::vector<size_t> victims = {};

  bool has(size_t chunk) const {
    return std::find(victims.begin(), victims.end(), chunk) != victims.end();
  }
};

void Planner::add_victims(Wanted& wanted, std::list<size_t>& coldest_first,
                          uint64_t Wanted::*room) const {
  const PagingChunk& hot = units_[wanted.hot];
  size_t misses = 0;
  for (auto at = coldest_first.begin(); at != coldest_first.end() && misses < kMostMisses;) {
    const size_t v = *at;
    if (wanted.*room >= wanted.need || wanted.need + wanted.evicted > move_budget_) return;
    const PagingChunk& cold = units_[v];
    if (moved_[v]) {
      at = coldest_first.erase(at);
      continue;
    }
    ++at;
    if (!outranks(hot, cold)) return;
    if (v == wanted.hot || wanted.has(v)) continue;
    const auto below = tier_below(v, wanted.tier);
    misses += !below;
    if (!below) continue;
    wanted.victims.push_back(v);
    wanted.evicted += bytes_above(v, *below);
    wanted.tier_room += cold.bytes_in(wanted.tier);
    if (cold.group == hot.group) wanted.budget_room += cold.bytes_in(wanted.tier);
  }
}

std::optional<std::vector<size_t>> Planner::find_victims(size_t index, size_t tier,
                                                         Evictable& evictable) const {
  const size_t group = units_[index].group;
  Wanted wanted{.hot = index,
                .tier = tier,
                .need = bytes_below(index, tier),
                .tier_room = room_in(tier),
                .budget_room = room_in_budget(group, tier)};
  // Room in a group's budget only the group itself can make, room in the tier everybody.
  add_victims(wanted, evictable.of_group[group], &Wanted::budget_room);
  add_victims(wanted, evictable.all, &Wanted::tier_room);
  const bool enough = wanted.tier_room >= wanted.need && wanted.budget_room >= wanted.need &&
                      wanted.need + wanted.evicted <= move_budget_;
  if (!enough) return {};
  return std::move(wanted.victims);
}

bool Planner::promote(size_t index, size_t tier, Evictable& evictable, MoveReason reason) {
  if (bytes_above(index, tier) > 0) return false;
  const auto victims = find_victims(index, tier, evictable);
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
