#include "daemon/agent/paging/paging_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace tierpilot::agent {
namespace {

constexpr int kMaxAncestors = 1000;  // a scan is no snapshot, and may show a circle

class TaskOwners {
 public:
  TaskOwners(const std::vector<ScannedProcess>& processes,
             const std::map<AttemptId, PlacedTask>& tasks) {
    for (const auto& process : processes) parents_[process.pid] = process.parent;
    for (const auto& [id, task] : tasks) {
      const auto parent = parents_.find(task.pid);
      if (parent == parents_.end()) continue;
      owners_[task.pid] = &task;
      // What a task detaches becomes a child of its supervisor.
      if (parent->second > 1) supervisors_[parent->second] = &task;
    }
  }

  const PlacedTask* owner(pid_t pid) const {
    if (supervisors_.count(pid)) return nullptr;
    for (int i = 0; i < kMaxAncestors; ++i) {
      if (const auto task = owners_.find(pid); task != owners_.end()) return task->second;
      if (const auto task = supervisors_.find(pid); task != supervisors_.end()) return task->second;
      const auto parent = parents_.find(pid);
      if (parent == parents_.end() || parent->second == pid) return nullptr;
      pid = parent->second;
    }
    return nullptr;
  }

 private:
  std::unordered_map<pid_t, pid_t> parents_;
  std::unordered_map<pid_t, const PlacedTask*> owners_, supervisors_;
};

class Chooser {
 public:
  explicit Chooser(const TargetQuestion& question)
      : question_(question), owners_(question.processes, question.tasks) {}

  TargetChoice choose() {
    for (const auto& process : question_.processes) {
      if (process.pid == question_.self || process.resident_bytes < question_.min_resident_bytes)
        continue;
      const auto* task = owners_.owner(process.pid);
      if (auto target = task ? of_task(process, *task) : of_rule(process))
        choice_.targets.push_back({*target, process.started_ticks, process.resident_bytes});
    }
    std::stable_sort(
        choice_.targets.begin(), choice_.targets.end(),
        [](const auto& a, const auto& b) { return a.resident_bytes > b.resident_bytes; });
    return std::move(choice_);
  }

 private:
  const PagingRule* rule_for(const ScannedProcess& process, const PlacedTask* task) const {
    if (question_.rules.empty()) return nullptr;
    auto identity = identify_process(question_.sysroot, process.pid);
    if (!identity) return nullptr;
    if (task) {
      identity->task = task->name;
      identity->datasets = task->datasets;
    }
    return find_rule(question_.rules, *identity);
  }

  std::optional<LoopTarget> of_rule(const ScannedProcess& process) {
    const auto* rule = rule_for(process, nullptr);
    if (!rule) return {};
    return by_rule(process.pid, *rule, rule->mode.value_or(PagingMode::kObserve));
  }

  std::optional<LoopTarget> of_task(const ScannedProcess& process, const PlacedTask& task) {
    if (task.wish.kind != MemoryWish::Kind::kNone && !task.wish.is_static()) return {};
    const auto* rule = rule_for(process, &task);
    const auto mode = rule && rule->mode ? *rule->mode : PagingMode::kEnforce;
    if (rule && !task.wish.is_static()) return by_rule(process.pid, *rule, mode);
    LoopTarget target{.pid = process.pid,
                      .group = {.name = fmt::format("task {}", task.attempt.task)},
                      .mode = mode};
    if (rule) target.group.fast_budget_bytes = rule->group.fast_budget_bytes;
    if (task.wish.is_static()) {
      target.group.policy = PagingPolicy::kStatic;
      target.group.static_tier =
          task.wish.kind == MemoryWish::Kind::kFast ? 0 : question_.tiers.size() - 1;
    }
    return target;
  }

  std::optional<LoopTarget> by_rule(pid_t pid, const PagingRule& rule, PagingMode mode) {
    LoopTarget target{.pid = pid, .group = rule.group, .mode = mode};
    if (rule.group.policy != PagingPolicy::kStatic) return target;
    const auto tier = find_tier(question_.tiers, rule.tier);
    if (tier) {
      target.group.static_tier = *tier;
      return target;
    }
    note(fmt::format("group '{}': {}", rule.group.name, tier.error().message));
    return {};
  }

  void note(std::string text) {
    if (std::find(choice_.notes.begin(), choice_.notes.end(), text) == choice_.notes.end())
      choice_.notes.push_back(std::move(text));
  }

  const TargetQuestion& question_;
  const TaskOwners owners_;
  TargetChoice choice_;
};

}  // namespace

TargetChoice choose_targets(const TargetQuestion& question) {
  return Chooser(question).choose();
}

}  // namespace tierpilot::agent
