// Counters of tracked owners (cgroups and process groups, see TP_OWNER_GROUP), which programs add
// to a bounded map of the kernel's.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bpf/intf.h"
#include "daemon/probe/passive/maps.h"

namespace tierpilot {

inline uint64_t owner_of_group(int32_t pgid) {
  return TP_OWNER_GROUP | static_cast<uint32_t>(pgid);
}

// Indices of the elements that `counted` says yes to.
template <class T, class Counted>
std::vector<uint32_t> used_elements(std::span<const T> elements, const Counted& counted) {
  std::vector<uint32_t> used;
  for (uint32_t i = 0; i < elements.size(); ++i)
    if (counted(elements[i])) used.push_back(i);
  return used;
}

// Each owner has up to `elements` counters of type T. The maps outlive it. `used` are the indices
// of elements that anybody's counts can be in, which the machine's own counters tell: reading costs
// a system call for each of these only.
template <class T>
class Owners {
 public:
  Owners(const ::bpf_map* owners, const ::bpf_map* counters, uint32_t elements)
      : owners_(owners), counters_(counters), elements_(elements) {}

  bool track(uint64_t owner) { return put_element(owners_, owner, std::vector<uint64_t>(1)); }

  // `used` is called when nothing more is counted for the owner.
  template <class Used>
  void untrack(uint64_t owner, const Used& used) {
    drop_element(owners_, owner);
    for (const uint32_t i : used()) drop_element(counters_, key(owner, i));
  }

  // How much found no room; nothing when the owner is not tracked.
  std::optional<uint64_t> lost(uint64_t owner) const {
    std::vector<uint64_t> lost(1);
    return get_element(owners_, owner, lost) ? std::optional(lost[0]) : std::nullopt;
  }

  // All elements, zeros for those that nothing was added to.
  std::vector<T> read(uint64_t owner, std::span<const uint32_t> used) const {
    std::vector<T> counters(elements_), one(1);
    for (const uint32_t i : used)
      if (get_element(counters_, key(owner, i), one)) counters[i] = one[0];
    return counters;
  }

 private:
  static tp_owner_key key(uint64_t owner, uint32_t index) {
    return {.owner = owner, .index = index, .zero = 0};
  }

  const ::bpf_map* owners_;
  const ::bpf_map* counters_;
  uint32_t elements_;
};

}  // namespace tierpilot
