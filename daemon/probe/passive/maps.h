// Typed access to the elements of a map.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "base/log.h"

namespace tierpilot {

// What user space reads of one element of a per-CPU map: a copy for each possible CPU.
template <class T>
std::vector<T> per_cpu_slots() {
  return std::vector<T>(static_cast<size_t>(libbpf_num_possible_cpus()));
}

// `values` has one element, or those of per_cpu_slots() for a per-CPU map.
template <class Key, class T>
bool put_element(const ::bpf_map* map, const Key& key, const std::vector<T>& values) {
  const int err = bpf_map__update_elem(map, &key, sizeof key, values.data(),
                                       values.size() * sizeof(T), BPF_ANY);
  if (err != 0)
    spdlog::warn("BPF map {}: key {} is not added: {}", bpf_map__name(map), key,
                 std::strerror(-err));
  return err == 0;
}

template <class Key, class T>
bool get_element(const ::bpf_map* map, const Key& key, std::vector<T>& values) {
  return bpf_map__lookup_elem(map, &key, sizeof key, values.data(), values.size() * sizeof(T), 0) ==
         0;
}

template <class Key>
void drop_element(const ::bpf_map* map, const Key& key) {
  bpf_map__delete_elem(map, &key, sizeof key, 0);
}

// All elements of an array map, in few system calls; of a per-CPU array one copy for each possible
// CPU after the other. Empty when the kernel refuses.
template <class T>
std::vector<T> read_array(const ::bpf_map* map) {
  const bool per_cpu = bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY;
  const auto copies = per_cpu ? static_cast<size_t>(libbpf_num_possible_cpus()) : 1;
  __u32 count = bpf_map__max_entries(map), batch = 0;
  std::vector<__u32> keys(count);
  std::vector<T> values(count * copies);
  const int err = bpf_map_lookup_batch(bpf_map__fd(map), nullptr, &batch, keys.data(),
                                       values.data(), &count, nullptr);
  // ENOENT: the end was reached.
  if (err != 0 && err != -ENOENT) values.clear();
  return values;
}

// Sums a per-CPU value. Every counter struct of bpf/intf.h is all __u64.
template <class T>
T sum_cpus(std::span<const T> slots) {
  static_assert(sizeof(T) % sizeof(uint64_t) == 0);
  constexpr size_t kWords = sizeof(T) / sizeof(uint64_t);
  uint64_t words[kWords] = {};
  for (const T& slot : slots) {
    uint64_t part[kWords];
    std::memcpy(part, &slot, sizeof slot);
    for (size_t i = 0; i < kWords; ++i) words[i] += part[i];
  }
  T total;
  std::memcpy(&total, words, sizeof total);
  return total;
}

template <class T>
T sum_cpus(const std::vector<T>& slots) {
  return sum_cpus(std::span<const T>(slots));
}

// The only element of a per-CPU array, summed.
template <class T>
T read_counters(const ::bpf_map* map) {
  auto slots = per_cpu_slots<T>();
  // Cannot fail for the first element of an array.
  get_element(map, uint32_t{0}, slots);
  return sum_cpus(slots);
}

}  // namespace tierpilot
