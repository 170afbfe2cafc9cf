// What must hold of units that tasks share.
#include <fmt/format.h>

#include <algorithm>

#include "model/unit_id.h"
#include "tests/dst/world.h"

namespace tierpilot::dst {
namespace {

constexpr uint32_t kWhole = 1'000;
constexpr uint32_t kHardly = 50;
constexpr uint64_t kPartsEvery = 8;  // steps
// Some looks at what jobs have, of which there is one every two seconds.
constexpr int64_t kSoonNs = 10 * kSecond;
// And a part of what was predicted of its run.
constexpr int64_t kDecidedNs = 5 * kSecond;
constexpr double kTrialPart = 0.25;

struct Sum {
  uint32_t milli = 0, jobs = 0;
  uint64_t memory_bytes = 0;
};

std::string unit_id(const std::string& node, const UnitShare& share) {
  return share.gpu.empty() ? shared_cores_id(node, share.unit) : gpu_unit_id(node, share.gpu);
}

}  // namespace

void World::check_shares() {
  if (!has_shares_) return;
  for (const auto& node : nodes_)
    if (node->up()) check_parts(*node);
  if (!coordinator_->up()) return;
  check_placed_parts();
  if (steps_ % kPartsEvery == 0) check_trials();
}

// Of what really runs.
void World::check_parts(const Node& node) {
  std::map<uint32_t, Sum> sums;
  const auto parts = node.daemon().warden().parts();
  for (const auto& part : parts) {
    auto& sum = sums[part.unit];
    sum.milli += part.milli;
    sum.memory_bytes += part.memory_bytes;
    ++sum.jobs;
  }
  // Beside others still run whose lease ended while the machine stood still.
  const bool is_sure = judge_.processes().is_sure(node.number(), loop_.now_ns());
  for (const auto& [unit, sum] : sums) {
    if (!is_sure) break;
    // Each has a thousandth at least, also where no more is left than that.
    if (sum.milli > kWhole + sum.jobs)
      judge_.violated("over-unit", fmt::format("{} jobs have {} thousandths of unit {} of {}",
                                               sum.jobs, sum.milli, unit, node.name()));
    if (sum.memory_bytes > node.shared_units().at(unit).memory_bytes)
      judge_.violated("over-unit", fmt::format("{} jobs have {} bytes of unit {} of {}", sum.jobs,
                                               sum.memory_bytes, unit, node.name()));
  }
  for (const auto& part : parts)
    check_grows(node, part, kWhole - std::min(kWhole, sums[part.unit].milli));
}

// What a job needs comes to it in seconds where nobody else has it.
void World::check_grows(const Node& node, const Warden::Part& part, uint32_t free) {
  const auto spec = judge_.tasks().find(part.attempt.task);
  if (spec == judge_.tasks().end()) return;
  const uint32_t needed = needs_milli(spec->second.argv);
  const bool lacks = part.milli > 0 && part.milli + kHardly < needed && free > kHardly;
  if (!lacks) {
    lacks_since_ns_.erase(part.attempt);
    return;
  }
  const int64_t since_ns = std::max(
      lacks_since_ns_.emplace(part.attempt, loop_.now_ns()).first->second, disturbed_until_ns_);
  if (loop_.now_ns() - since_ns > kSoonNs)
    judge_.violated("held-back",
                    fmt::format("task {} has {} thousandths of unit {} of {} and needs {}, and "
                                "{} are free since {:.1f} s",
                                part.attempt.task, part.milli, part.unit, node.name(), needed, free,
                                static_cast<double>(loop_.now_ns() - since_ns) / 1e9));
}

// As the coordinator has it. Of a task that has ended copies of what it wrote may be waited for.
void World::check_placed_parts() {
  const auto& core = coordinator_->core();
  std::map<std::pair<std::string, uint32_t>, Sum> sums;
  for (const auto& [id, task] : core.state.tasks.all()) {
    const bool placed = task.state == TaskState::kAssigned || task.state == TaskState::kRunning;
    if (!placed || !task.share) {
      placed_.erase(id);
      continue;
    }
    const auto unit = unit_id(task.node, *task.share);
    const bool is_new = std::exchange(placed_[id], task.attempt) != task.attempt;
    const auto why = is_new ? core.state.units.unhealthy_because(unit) : "";
    if (task.state == TaskState::kAssigned && !why.empty())
      judge_.violated("unsound-unit",
                      fmt::format("task {} is placed on unit {}: {}", id, unit, why));
    if (steps_ % kPartsEvery != 0) continue;
    const auto sharers = core.shares.sharers_of(unit);
    if (std::ranges::find(sharers, id) == sharers.end()) continue;
    auto& sum = sums[{task.node, task.share->unit}];
    sum.memory_bytes += task.share->memory_bytes;
    sum.milli += task.share->milli;
  }
  if (steps_ % kPartsEvery == 0)
    for (const auto& [unit, sum] : sums) check_given(unit, sum.milli, sum.memory_bytes);
}

// For a moment: a change counts once its node has answered, and after a restart of the coordinator
// an end that could not be written down once its node has told it again.
void World::check_given(const std::pair<std::string, uint32_t>& unit, uint32_t milli,
                        uint64_t memory_bytes) {
  const auto& node = *nodes_.at(static_cast<size_t>(unit.first.back() - '1'));
  if (milli <= kWhole && memory_bytes <= node.shared_units().at(unit.second).memory_bytes) {
    over_since_ns_.erase(unit);
    return;
  }
  const int64_t since_ns =
      std::max(over_since_ns_.emplace(unit, loop_.now_ns()).first->second, disturbed_until_ns_);
  if (loop_.now_ns() - since_ns > kSoonNs)
    judge_.violated("over-unit",
                    fmt::format("{} thousandths and {} bytes of unit {} of {} are given away",
                                milli, memory_bytes, unit.second, unit.first));
}

// Whose job runs is decided once that has shown its pace, or was to.
void World::check_trials() {
  for (const auto& [id, spec] : judge_.tasks()) {
    const auto* task =
        judge_.promises().is_on_trial(id) ? coordinator_->core().state.tasks.find(id) : nullptr;
    if (!task || task->state != TaskState::kRunning) {
      on_trial_since_ns_.erase(id);
      continue;
    }
    const int64_t since_ns =
        std::max(on_trial_since_ns_.emplace(id, loop_.now_ns()).first->second, disturbed_until_ns_);
    const auto part_ns =
        static_cast<int64_t>(kTrialPart * static_cast<double>(spec.share.estimate_ms * kMs));
    if (loop_.now_ns() - since_ns <= part_ns + kDecidedNs) continue;
    coordinator_->look_at(id);  // it may be decided and not told yet
    if (judge_.promises().is_on_trial(id))
      judge_.violated("undecided",
                      fmt::format("the promise of task {} is on trial, and it runs since {:.1f} s "
                                  "of the {:.1f} s that were predicted",
                                  id, static_cast<double>(loop_.now_ns() - since_ns) / 1e9,
                                  static_cast<double>(spec.share.estimate_ms) / 1e3));
  }
}

// Nobody has a part of a unit when all have ended.
void World::check_free_units() {
  const auto& core = coordinator_->core();
  for (const auto& node : nodes_)
    for (size_t unit = 0; unit < node->shared_units().size(); ++unit) {
      const auto id = unit_id(node->name(), {.unit = static_cast<uint32_t>(unit),
                                             .gpu = node->shared_units()[unit].gpu});
      for (const uint64_t task : core.shares.sharers_of(id))
        judge_.violated("unbounded",
                        fmt::format("task {} still counts as a user of unit {}", task, id));
    }
}

}  // namespace tierpilot::dst
