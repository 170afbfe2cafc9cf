#include "daemon/memory/paging/plan.h"

#include <fmt/format.h>

#include <numeric>

#include "daemon/memory/paging/planner.h"

namespace tierpilot {
namespace {

Status check(const PagingInput& input) {
  const auto invalid = [](std::string why) {
    return fail(ErrorCode::kInvalid, "placement: " + std::move(why));
  };
  if (input.tiers.size() > kMaxTiers)
    return invalid(fmt::format("{} tiers, at most {} are possible", input.tiers.size(), kMaxTiers));
  for (const auto& tier : input.tiers)
    if (tier.nodes.empty()) return invalid(fmt::format("tier '{}' has no node", tier.name));
  for (const auto& group : input.groups)
    if (group.policy == PagingPolicy::kStatic && group.static_tier >= input.tiers.size())
      return invalid(fmt::format("group '{}' names tier {} of {}", group.name, group.static_tier,
                                 input.tiers.size()));
  for (const auto& chunk : input.chunks) {
    if (chunk.group >= input.groups.size())
      return invalid(fmt::format("process {} names group {} of {}", chunk.pid, chunk.group,
                                 input.groups.size()));
    if (chunk.start >= chunk.end || chunk.page_bytes == 0)
      return invalid(fmt::format("process {} has an empty chunk at {:#x}", chunk.pid, chunk.start));
  }
  return {};
}

}  // namespace

std::string_view policy_name(PagingPolicy policy) {
  switch (policy) {
    case PagingPolicy::kStatic:
      return "static";
    case PagingPolicy::kHeat:
      return "heat";
    case PagingPolicy::kBalance:
      return "balance";
  }
  return "unknown";
}

Result<PagingPolicy> policy_from_name(std::string_view name) {
  for (const auto policy : {PagingPolicy::kStatic, PagingPolicy::kHeat, PagingPolicy::kBalance})
    if (policy_name(policy) == name) return policy;
  return fail(
      ErrorCode::kInvalid,
      fmt::format("policy '{}': there is none of that name: static, heat or balance", name));
}

std::string_view mode_name(PagingMode mode) {
  switch (mode) {
    case PagingMode::kObserve:
      return "observe";
    case PagingMode::kAdvise:
      return "advise";
    case PagingMode::kEnforce:
      return "enforce";
  }
  return "unknown";
}

Result<PagingMode> mode_from_name(std::string_view name) {
  for (const auto mode : {PagingMode::kObserve, PagingMode::kAdvise, PagingMode::kEnforce})
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

uint64_t PagingChunk::resident_bytes() const {
  return uint64_t{page_bytes} *
         std::accumulate(pages_in_tier.begin(), pages_in_tier.end(), uint64_t{0});
}

uint64_t MovePlan::bytes() const {
  uint64_t sum = 0;
  for (const auto& move : moves) sum += move.bytes;
  return sum;
}

Result<MovePlan> plan_moves(const PagingInput& input) {
  if (auto status = check(input); !status) return tl::unexpected(status.error());
  Planner planner(input);
  if (input.tiers.size() < 2)
    planner.note("one memory tier: there is nowhere to move pages to");
  else
    for (const auto plan : {plan_static, plan_heat, plan_balance}) plan(planner);
  return planner.take();
}

}  // namespace tierpilot
