#include "daemon/memory/placement/plan.h"

#include <fmt/format.h>

#include <numeric>

#include "daemon/memory/placement/planner.h"

namespace tierpilot {
namespace {

Status check(const PlacementInput& input) {
  const auto invalid = [](std::string why) {
    return fail(ErrorCode::kInvalid, "placement: " + std::move(why));
  };
  if (input.tiers.size() > kMaxTiers)
    return invalid(fmt::format("{} tiers, at most {} are possible", input.tiers.size(), kMaxTiers));
  for (const auto& tier : input.tiers)
    if (tier.nodes.empty()) return invalid(fmt::format("tier '{}' has no node", tier.name));
  for (const auto& group : input.groups)
    if (group.policy == PlacementPolicy::kStatic && group.static_tier >= input.tiers.size())
      return invalid(fmt::format("group '{}' names tier {} of {}", group.name, group.static_tier,
                                 input.tiers.size()));
  for (const auto& unit : input.units) {
    if (unit.group >= input.groups.size())
      return invalid(fmt::format("process {} names group {} of {}", unit.pid, unit.group,
                                 input.groups.size()));
    if (unit.start >= unit.end || unit.page_bytes == 0)
      return invalid(fmt::format("process {} has an empty unit at {:#x}", unit.pid, unit.start));
  }
  return {};
}

}  // namespace

std::string_view policy_name(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kStatic:
      return "static";
    case PlacementPolicy::kHeat:
      return "heat";
    case PlacementPolicy::kBalance:
      return "balance";
  }
  return "unknown";
}

Result<PlacementPolicy> policy_from_name(std::string_view name) {
  for (const auto policy :
       {PlacementPolicy::kStatic, PlacementPolicy::kHeat, PlacementPolicy::kBalance})
    if (policy_name(policy) == name) return policy;
  return fail(
      ErrorCode::kInvalid,
      fmt::format("policy '{}': there is none of that name: static, heat or balance", name));
}

std::string_view mode_name(PlacementMode mode) {
  switch (mode) {
    case PlacementMode::kObserve:
      return "observe";
    case PlacementMode::kAdvise:
      return "advise";
    case PlacementMode::kEnforce:
      return "enforce";
  }
  return "unknown";
}

Result<PlacementMode> mode_from_name(std::string_view name) {
  for (const auto mode : {PlacementMode::kObserve, PlacementMode::kAdvise, PlacementMode::kEnforce})
    if (mode_name(mode) == name) return mode;
  return fail(
      ErrorCode::kInvalid,
      fmt::format("mode '{}': there is none of that name: observe, advise or enforce", name));
}

std::string_view move_reason_text(MoveReason reason) {
  switch (reason) {
    case MoveReason::kHot:
      return "hot";
    case MoveReason::kMakeRoom:
      return "makes room";
    case MoveReason::kOverBudget:
      return "over budget";
    case MoveReason::kRule:
      return "rule";
    case MoveReason::kLevelUp:
      return "faster tier answers sooner";
    case MoveReason::kLevelDown:
      return "faster tier is overloaded";
  }
  return "unknown";
}

uint64_t PlacementUnit::resident_bytes() const {
  return uint64_t{page_bytes} *
         std::accumulate(pages_in_tier.begin(), pages_in_tier.end(), uint64_t{0});
}

uint64_t MovePlan::bytes() const {
  uint64_t sum = 0;
  for (const auto& move : moves) sum += move.bytes;
  return sum;
}

Result<MovePlan> plan_moves(const PlacementInput& input) {
  if (auto status = check(input); !status) return tl::unexpected(status.error());
  Planner planner(input);
  if (input.tiers.size() < 2)
    planner.note("one memory tier: there is nowhere to move pages to");
  else
    for (const auto plan : {plan_static, plan_heat, plan_balance}) plan(planner);
  return planner.take();
}

}  // namespace tierpilot
