#include "policies/swap/machine/machine.h"

#include <algorithm>

namespace tierpilot::swap {

Machine::Machine(const Graph& graph, const Limits& limits, const ProgramHistory& history,
                 ReplayClock& clock, Manager& manager)
    : graph_(graph),
      limits_(limits),
      history_(history),
      clock_(clock),
      manager_(manager),
      device_(graph.storages.size(), limits.budget_bytes),
      copies_(graph.storages.size(), limits.link),
      made_(graph.tensors.size()) {}

void Machine::release(StorageId storage) {
  device_.remove(storage);
  device_.give_back(graph_.storages[storage].bytes);
  if (!has_copy(storage))
    for (const auto tensor : graph_.storages[storage].tensors) made_[tensor] = 0;
  manager_.left(*this, storage);
}

void Machine::drop(StorageId storage) {
  device_.withdraw(storage);
  copies_.stay(storage);
  if (!has_copy(storage)) ++evictions_;
  release(storage);
}

void Machine::swap_out(StorageId storage) {
  if (has_copy(storage)) return drop(storage);
  device_.withdraw(storage);
  copies_.leave(storage, graph_.storages[storage].bytes, clock_.now_ns());
}

void Machine::swap_in(StorageId storage) {
  const auto bytes = graph_.storages[storage].bytes;
  copies_.come_back(storage, bytes, clock_.now_ns());
  device_.take(bytes);
  device_.add(storage);
  manager_.arrived(*this, storage);
}

bool Machine::wait() {
  copies_.skip_stays();
  const auto end_ns = copies_.next_departure_ns();
  if (end_ns == LinkCopies::kNever) return false;
  clock_.stall_until(end_ns);
  settle();
  return true;
}

int64_t Machine::departs_in_ns() const {
  const auto end_ns = copies_.next_departure_ns();
  return end_ns == LinkCopies::kNever ? end_ns : std::max<int64_t>(0, end_ns - clock_.now_ns());
}

void Machine::settle() {
  for (;;) {
    const auto storage = copies_.take_departed(clock_.now_ns());
    if (storage == kNone) return;
    release(storage);
  }
}

bool Machine::make_room(int64_t bytes) {
  settle();
  return device_.fits(bytes) || manager_.make_room(*this, bytes);
}

void Machine::place(TensorId tensor) {
  const auto storage = graph_.tensors[tensor].storage;
  made_[tensor] = 1;
  if (!graph_.tensors[tensor].owner) return;
  if (device_.resident(storage)) {
    device_.give_back(graph_.storages[storage].bytes);  // the second copy
    return;
  }
  copies_.made(storage);
  device_.add(storage);
  if (graph_.tensors[tensor].maker == kNone)
    device_.pin(storage);
  else
    manager_.arrived(*this, storage);
}

void Machine::lock(StorageId storage) {
  copies_.stay(storage);
  device_.lock(storage);
}

void Machine::unlock(StorageId storage) {
  if (device_.unlock(storage)) manager_.unlocked(*this, storage);
}

void Machine::keep_for_good(StorageId storage) {
  copies_.stay(storage);
  device_.pin(storage);
}

void Machine::add_to(Counts& counts) const {
  counts.evictions += evictions_;
  copies_.add_to(counts);
}

}  // namespace tierpilot::swap
