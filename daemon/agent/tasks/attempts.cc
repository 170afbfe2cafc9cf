#include "daemon/agent/tasks/attempts.h"

#include <algorithm>
#include <utility>

namespace tierpilot::agent {

Attempt& Attempts::add(std::unique_ptr<Attempt> attempt) {
  const AttemptId id = attempt->id();
  return *(by_id_[id] = std::move(attempt));
}

void Attempts::erase(AttemptId id) {
  by_id_.erase(id);
  const auto other = by_id_.lower_bound({id.task, 0});
  if (other == by_id_.end() || other->first.task != id.task) forgotten_(id.task);
}

void Attempts::forget_surplus(size_t most) {
  std::vector<std::pair<uint64_t, AttemptId>> forgettable;
  if (by_id_.size() <= most) return;
  for (const auto& [id, attempt] : by_id_)
    if (attempt->stage == Stage::kEnded && attempt->acknowledged)
      forgettable.emplace_back(attempt->ending, id);
  std::sort(forgettable.begin(), forgettable.end());
  const size_t surplus = by_id_.size() - most;
  for (size_t i = 0; i < std::min(surplus, forgettable.size()); ++i) erase(forgettable[i].second);
}

Attempt* Attempts::find(AttemptId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.get();
}

const Attempt* Attempts::newer(AttemptId id) const {
  const auto next = by_id_.upper_bound(id);
  return next != by_id_.end() && next->first.task == id.task ? next->second.get() : nullptr;
}

Attempt* Attempts::unended_older(AttemptId id) const {
  for (auto it = by_id_.lower_bound({id.task, 0}); it != by_id_.end() && it->first < id; ++it)
    if (it->second->stage != Stage::kEnded) return it->second.get();
  return nullptr;
}

Attempt* Attempts::unblocked_by(AttemptId ended) const {
  for (auto it = by_id_.upper_bound(ended); it != by_id_.end() && it->first.task == ended.task;
       ++it)
    if (it->second->stage == Stage::kBlocked && !unended_older(it->first)) return it->second.get();
  return nullptr;
}

std::vector<AttemptId> Attempts::live() const {
  std::vector<AttemptId> ids;
  for (const auto& [id, attempt] : by_id_)
    if (attempt->stage != Stage::kEnded || !attempt->acknowledged) ids.push_back(id);
  return ids;
}

std::set<AttemptId> Attempts::held() const {
  std::set<AttemptId> ids;
  for (const auto& [id, attempt] : by_id_)
    if (attempt->stage != Stage::kEnded) ids.insert(id);
  return ids;
}

size_t Attempts::unended() const {
  return static_cast<size_t>(std::count_if(by_id_.begin(), by_id_.end(), [](const auto& item) {
    return item.second->stage != Stage::kEnded;
  }));
}

size_t Attempts::running() const {
  return static_cast<size_t>(std::count_if(by_id_.begin(), by_id_.end(), [](const auto& item) {
    return item.second->stage == Stage::kRunning;
  }));
}

uint16_t Attempts::master_port(AttemptId id) const {
  const auto* attempt = find(id);
  return attempt && attempt->assignment.rank ? attempt->assignment.rank->master_port : 0;
}

}  // namespace tierpilot::agent
