// Which CPUs a task gets for its compute units.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tierpilot::agent {

// The node's CPUs are dealt out over its units in order: with 8 CPUs and 4 units, unit 1 is CPUs 2
// and 3. With fewer CPUs than units, units share them, and every task may run on all.
class CpuAllocator {
 public:
  CpuAllocator(std::vector<int> cpus, uint32_t units);

  struct Grant {
    std::vector<uint32_t> units;
    std::vector<int> cpus;
  };
  // The first free ones of `among`, in its order; of all, where that is empty. nullopt: not so many
  // are free now.
  std::optional<Grant> take(uint32_t units, const std::vector<uint32_t>& among = {});
  void give_back(const Grant& grant);

  std::vector<int> cpus_of(const std::vector<uint32_t>& units) const;
  // Those of all units but these; all where nothing else is left.
  std::vector<int> cpus_without(const std::vector<uint32_t>& units) const;
  double cores_per_unit() const {
    return static_cast<double>(cpus_.size()) / static_cast<double>(busy_.size());
  }

  uint32_t units() const { return static_cast<uint32_t>(busy_.size()); }
  uint32_t busy_units() const { return busy_count_; }

 private:
  std::vector<int> cpus_;
  std::vector<bool> busy_;
  uint32_t busy_count_ = 0;
};

}  // namespace tierpilot::agent
