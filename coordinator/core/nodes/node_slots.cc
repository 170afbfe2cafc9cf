#include "coordinator/core/nodes/node_slots.h"

#include <algorithm>

namespace tierpilot {

std::optional<uint32_t> NodeSlots::take(const std::string& name) {
  if (const auto known = find(name)) return known;
  while (names_.contains(lowest_free_)) ++lowest_free_;
  if (lowest_free_ >= kMost) return std::nullopt;
  remember(name, lowest_free_);
  return lowest_free_;
}

void NodeSlots::remember(const std::string& name, uint32_t slot) {
  forget(name);
  slots_[name] = slot;
  names_[slot] = name;
}

void NodeSlots::forget(const std::string& name) {
  const auto slot = slots_.extract(name);
  if (!slot) return;
  names_.erase(slot.mapped());
  lowest_free_ = std::min(lowest_free_, slot.mapped());
}

std::optional<uint32_t> NodeSlots::find(const std::string& name) const {
  const auto known = slots_.find(name);
  return known == slots_.end() ? std::nullopt : std::optional(known->second);
}

std::vector<std::string> NodeSlots::names() const {
  std::vector<std::string> names;
  for (const auto& [name, slot] : slots_) names.push_back(name);
  return names;
}

std::string NodeSlots::name_of(uint32_t slot) const {
  const auto found = names_.find(slot);
  return found == names_.end() ? std::string() : found->second;
}

}  // namespace tierpilot
