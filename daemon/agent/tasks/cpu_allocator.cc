#include "daemon/agent/tasks/cpu_allocator.h"

#include <algorithm>

namespace tierpilot::agent {

CpuAllocator::CpuAllocator(std::vector<int> cpus, uint32_t units)
    : cpus_(std::move(cpus)), busy_(units, false) {}

std::optional<CpuAllocator::Grant> CpuAllocator::take(uint32_t units,
                                                      const std::vector<uint32_t>& among) {
  if (units > this->units() - busy_count_) return std::nullopt;
  Grant grant;
  const auto look_at = [&](uint32_t unit) {
    if (unit >= busy_.size() || busy_[unit] || grant.units.size() == units) return;
    busy_[unit] = true;
    grant.units.push_back(unit);
  };
  if (among.empty())
    for (uint32_t unit = 0; unit < busy_.size(); ++unit) look_at(unit);
  for (const uint32_t unit : among) look_at(unit);
  busy_count_ += static_cast<uint32_t>(grant.units.size());
  if (grant.units.size() < units) {
    give_back(grant);
    return std::nullopt;
  }
  std::sort(grant.units.begin(), grant.units.end());
  grant.cpus = cpus_of(grant.units);
  return grant;
}

void CpuAllocator::give_back(const Grant& grant) {
  for (const uint32_t unit : grant.units) busy_[unit] = false;
  busy_count_ -= static_cast<uint32_t>(grant.units.size());
}

std::vector<int> CpuAllocator::cpus_without(const std::vector<uint32_t>& units) const {
  std::vector<uint32_t> others;
  for (uint32_t unit = 0; unit < busy_.size(); ++unit)
    if (std::find(units.begin(), units.end(), unit) == units.end()) others.push_back(unit);
  return others.empty() ? cpus_ : cpus_of(others);
}

std::vector<int> CpuAllocator::cpus_of(const std::vector<uint32_t>& units) const {
  if (cpus_.size() < busy_.size()) return cpus_;
  std::vector<int> cpus;
  for (const size_t unit : units)
    for (size_t i = unit * cpus_.size() / busy_.size();
         i < (unit + 1) * cpus_.size() / busy_.size(); ++i)
      cpus.push_back(cpus_[i]);
  return cpus;
}

}  // namespace tierpilot::agent
