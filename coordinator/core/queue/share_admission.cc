#include "coordinator/core/queue/share_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/share.h"

namespace tierpilot {
namespace {

// What units of its engine have, on the node that it wants if it wants one.
NodeShapes shared_shapes(const TaskSpec& spec, const Registry& registry) {
  NodeShapes shapes;
  if (spec.node.empty()) {
    const auto& all = registry.summary().shared_shapes;
    const auto found = all.find(spec.share.engine);
    return found == all.end() ? shapes : found->second;
  }
  if (const auto* node = registry.find(spec.node))
    for (const auto& unit : node->facts.shared_units)
      if (unit.engine() == spec.share.engine) shapes.add(node->facts.resources_of(unit));
  return shapes;
}

// Without units that are known the task waits.
Status check_fits(const TaskSpec& spec, const std::string& who, const Registry& registry) {
  const Resources needed{.memory_bytes = spec.memory_bytes,
                         .swap_room_bytes = spec.swap_room_bytes};
  const NodeShapes shapes = shared_shapes(spec, registry);
  if (shapes.empty() || shapes.hold(needed)) return {};
  if (spec.node.empty() && !registry.knows_all_shapes()) return {};
  const Resources most = shapes.largest();
  const auto unit =
      fmt::format("{} that is shared{}", spec.has_gpu_share() ? "GPU" : "group of cores",
                  spec.node.empty() ? "" : " on node '" + spec.node + "'");
  const auto memory = format_bytes(spec.memory_bytes), room = format_bytes(spec.swap_room_bytes);
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: asks for {}", who, why));
  };
  if (needed.memory_bytes > most.memory_bytes)
    return refuse(fmt::format("{} of memory, and no {} has more than {}", memory, unit,
                              format_bytes(most.memory_bytes)));
  if (needed.swap_room_bytes > most.swap_room_bytes)
    return refuse(fmt::format("{} of room for swapping, and beside no {} is more than {}", room,
                              unit, format_bytes(most.swap_room_bytes)));
  return refuse(fmt::format("{} of memory and {} of room for swapping, and no {} has both", memory,
                            room, unit));
}

Status check_promise(const TaskSpec& spec, const std::string& who) {
  const auto& share = spec.share;
  constexpr int64_t kLeastPromise_ms = 1000;
  constexpr int64_t kMostPromise_ms = int64_t{3650} * 24 * 3600 * 1000;
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::kInvalid, who + ": " + why);
  };
  if (share.promise_ms == 0)
    return share.promise_on_trial
               ? refuse("it is to be on trial for a promise, and asks for none: add 'promise'")
               : Status{};
  if (share.promise_ms < kLeastPromise_ms || share.promise_ms > kMostPromise_ms)
    return refuse(fmt::format("a promise of {} s: ask for one from 1 s to ten years",
                              static_cast<double>(share.promise_ms) / 1e3));
  if (!share.latency_sensitive)
    return refuse("a promise is for the class latency-sensitive: best-effort tasks get none");
  if (spec.time_limit_ms > 0 && share.estimate_ms > spec.time_limit_ms)
    return refuse(fmt::format(
        "a promise that nobody can keep: it takes {} s by its estimate, and is ended after {} s, "
        "its time limit: leave out one of them",
        static_cast<double>(share.estimate_ms) / 1e3,
        static_cast<double>(spec.time_limit_ms) / 1e3));
  if (spec.swap_room_bytes > 0 && !share.promise_on_trial)
    return refuse(
        "a promise to a task with room for swapping can be on trial only, as nobody knows when "
        "others give that back: add 'promise_on_trial', or leave out one of them");
  return {};
}

}  // namespace

Status check_share(const TaskSpec& spec, const std::string& who, const Registry& registry) {
  const auto& share = spec.share;
  const auto refuse = [&](std::string why) {
    return fail(ErrorCode::kInvalid, who + ": " + std::move(why));
  };
  if (!share.wanted) return {};
  if (spec.is_gang() || spec.is_elastic())
    return refuse("a gang or an elastic task has units of its own: leave out 'share'");
  if (spec.units != 1) return refuse("a share is of one unit: leave out 'units'");
  if (share.milli > sharing::kWholeUnit)
    return refuse(fmt::format("a share of {} thousandths: ask for 1 to {}, or for auto",
                              share.milli, sharing::kWholeUnit));
  constexpr uint64_t kLeastMemory = 1 << 20;
  if (spec.memory_bytes > 0 && spec.memory_bytes < kLeastMemory)
    return refuse(fmt::format("a share with {} of memory: no program runs in less than {}",
                              format_bytes(spec.memory_bytes), format_bytes(kLeastMemory)));
  if (share.estimate_ms < 0) return refuse("the estimate must not be in the past");
  if (auto ok = check_promise(spec, who); !ok) return ok;
  if (auto ok = check_fits(spec, who, registry); !ok) return ok;
  if (share.model_card.empty()) return {};
  if (auto card = sharing::read_card(share.model_card); !card)
    return refuse("its model card: " + card.error().message);
  return {};
}

}  // namespace tierpilot
