// A device with a memory budget while a step is replayed on it: which storages are there, what
// leaves and what comes back. A manager decides what leaves.
//
// Copies over the link run beside the operators: what leaves counts until its copy ends, what
// returns counts from its copy's start.
#pragma once

#include <vector>

#include "policies/swap/machine/clock.h"
#include "policies/swap/machine/copies.h"
#include "policies/swap/machine/device.h"
#include "policies/swap/machine/history.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/manager.h"

namespace tierpilot::swap {

class Machine {
 public:
  // All of it has to outlive the machine.
  Machine(const Graph& graph, const Limits& limits, const ProgramHistory& history,
          ReplayClock& clock, Manager& manager);

  const Graph& graph() const { return graph_; }
  const Limits& limits() const { return limits_; }
  const ProgramHistory& history() const { return history_; }
  const Device& device() const { return device_; }
  int64_t clock_ns() const { return clock_.now_ns(); }
  bool has_copy(StorageId storage) const { return copies_.has_copy(storage, clock_.now_ns()); }
  bool present(TensorId tensor) const {
    return made_[tensor] && device_.resident(graph_.tensors[tensor].storage);
  }
  // Whether the tensor can be had without recomputing.
  bool kept(TensorId tensor) const {
    const auto storage = graph_.tensors[tensor].storage;
    return made_[tensor] && (device_.resident(storage) || has_copy(storage));
  }
  // When a storage that comes over the link can be read.
  int64_t ready_ns(StorageId storage) const { return copies_.ready_ns(storage); }

  // For managers. What goes has to be evictable.
  void drop(StorageId storage);
  void swap_out(StorageId storage);
  // Begins to bring back a storage that has a copy and fits.
  void swap_in(StorageId storage);
  // Until the next copy out has ended; false when there is none.
  bool wait();
  // How long that would take; the largest number when there is none.
  int64_t departs_in_ns() const;
  // Notes copies that have ended by now.
  void settle();

  // For who runs the program. Whether so much fits now: false when the manager can make no room.
  bool make_room(int64_t bytes);
  // For what is made next.
  void take(int64_t bytes) { device_.take(bytes); }
  // It has been made, in bytes that were taken, or is a constant's, which never leaves.
  void place(TensorId tensor);
  // Operators lock what they read.
  void lock(StorageId storage);
  void unlock(StorageId storage);
  void keep_for_good(StorageId storage);
  // What has left and come back.
  void add_to(Counts& counts) const;

 private:
  void release(StorageId storage);

  const Graph& graph_;
  const Limits& limits_;
  const ProgramHistory& history_;
  ReplayClock& clock_;
  Manager& manager_;
  Device device_;
  LinkCopies copies_;
  std::vector<char> made_;  // by tensor: can be had without recomputing
  int64_t evictions_ = 0;
};

}  // namespace tierpilot::swap
