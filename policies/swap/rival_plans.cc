#include "policies/swap/rival_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

namespace tierpilot::swap {
namespace {

bool is_convolution(std::string_view name) {
  std::string lower(name);
  for (auto& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("conv") != std::string::npos && lower.find("backward") == std::string::npos;
}

OperatorId forward_end(const Graph& graph) {
  return std::min(graph.backward, static_cast<OperatorId>(graph.operators.size()));
}

Plan empty_plan(const Graph& graph) {
  return {.absences = std::vector<std::vector<Absence>>(graph.storages.size())};
}

void leave(Plan& plan, const Graph& graph, const Timetable& timetable, StorageId storage,
           Action action) {
  auto& list = plan.absences[storage];
  const auto absence = long_absence(graph, timetable, storage);
  if (absence && list.empty()) list.push_back({absence->from, absence->to, action});
}

Plan swap_all(const Graph& graph, const Timetable& timetable) {
  auto plan = empty_plan(graph);
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    leave(plan, graph, timetable, storage, Action::kSwap);
  return plan;
}

// What an operator keeps for its backward pass is a storage that the operator makes and nobody else
// in the forward pass reads: tables of operators have no other.
Result<Plan> vdnn(const Graph& graph, const Timetable& timetable, bool all) {
  auto plan = empty_plan(graph);
  bool any = false;
  const auto end = forward_end(graph);
  for (OperatorId op = 0; op < end; ++op) {
    const auto& [name, time_ns, args, outputs] = graph.operators[op];
    if (!all && !is_convolution(name)) continue;
    any = true;
    for (const auto arg : args)
      leave(plan, graph, timetable, graph.tensors[arg].storage, Action::kSwap);
    for (const auto output : outputs)
      if (const auto storage = graph.tensors[output].storage;
          timetable.next_use(storage, op) >= end)
        leave(plan, graph, timetable, storage, Action::kSwap);
  }
  if (any) return plan;
  return fail(
      ErrorCode::kInvalid,
      "vdnn swaps the inputs of convolutions, and the step has no operator with \"conv\" in "
      "its name; vdnn-all swaps those of all operators");
}

// What a segment reads of earlier ones is needed whenever something of it is recomputed, though the
// program may have let go of it.
void keep_inputs(const Graph& graph, Timetable& timetable, Position length) {
  std::vector<std::set<Position>> needs(graph.backward / length + 1);
  std::vector<std::set<Position>> kept(graph.storages.size());
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    if (const auto absence = long_absence(graph, timetable, storage))
      needs[timetable.uses(storage).front() / length].insert(absence->to);
  for (OperatorId op = 0; op < graph.backward; ++op)
    for (const auto arg : graph.operators[op].args) {
      const auto storage = graph.tensors[arg].storage;
      if (graph.storages[storage].constant || timetable.uses(storage).back() >= graph.backward ||
          timetable.uses(storage).front() / length == op / length)
        continue;
      kept[storage].insert(needs[op / length].begin(), needs[op / length].end());
    }
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage)
    timetable.also_used(storage, {kept[storage].begin(), kept[storage].end()});
}

}  // namespace

std::optional<Absence> long_absence(const Graph& graph, const Timetable& timetable,
                                    StorageId storage) {
  const auto& uses = timetable.uses(storage);
  if (graph.storages[storage].constant || uses.size() < 2) return {};
  if (graph.backward != kNone) {
    const auto back = std::lower_bound(uses.begin(), uses.end(), graph.backward);
    if (back == uses.begin() || back == uses.end() || *back - *std::prev(back) < 2) return {};
    return Absence{*std::prev(back), *back, Action::kSwap};
  }
  const auto gap_ns = [&](size_t i) {
    return timetable.start_ns(uses[i]) - timetable.start_ns(uses[i - 1]);
  };
  size_t longest = 1;
  for (size_t i = 2; i < uses.size(); ++i)
    if (gap_ns(i) > gap_ns(longest)) longest = i;
  if (uses[longest] - uses[longest - 1] < 2) return {};
  return Absence{uses[longest - 1], uses[longest], Action::kSwap};
}

Result<Plan> checkpoint_plan(const Graph& graph, Timetable& timetable, double length_factor) {
  if (graph.backward == kNone || graph.backward >= graph.operators.size())
    return fail(ErrorCode::kInvalid,
                "checkpoint needs to know where the backward pass begins, and the step does not "
                "mark it");
  auto plan = empty_plan(graph);
  const auto length = static_cast<Position>(
      std::max(1.0, std::ceil(length_factor * std::sqrt(static_cast<double>(graph.backward)))));
  keep_inputs(graph, timetable, length);
  for (StorageId storage = 0; storage < graph.storages.size(); ++storage) {
    const auto absence = long_absence(graph, timetable, storage);
    if (!absence) continue;
    const auto made = timetable.uses(storage).front();
    if (made / length == absence->from / length)
      plan.absences[storage].push_back({absence->from, absence->to, Action::kRecompute});
  }
  return plan;
}

Status need_link(std::string_view policy, const Limits& limits) {
  if (limits.link.exists()) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{} only swaps, and there is no link: give its --bandwidth", policy));
}

Result<Plan> rival_plan(std::string_view name, const Graph& graph, Timetable& timetable,
                        const Limits& limits) {
  if (name == "checkpoint") return checkpoint_plan(graph, timetable, 1);
  if (auto status = need_link(name, limits); !status) return tl::unexpected(status.error());
  if (name == "swap-all") return swap_all(graph, timetable);
  return vdnn(graph, timetable, name == "vdnn-all");
}

}  // namespace tierpilot::swap
