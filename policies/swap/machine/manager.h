// Decides what leaves the device, and hears of what happens there.
#pragma once

#include "policies/swap/graph.h"

namespace tierpilot::swap {

class Machine;

class Manager {
 public:
  virtual ~Manager() = default;
  // Drops, swaps or waits until machine.device().fits(bytes); false when it cannot: the replay
  // fails.
  virtual bool make_room(Machine& machine, int64_t bytes) = 0;
  // Whether a storage leaves at once when its last handle goes.
  virtual bool frees_unreferenced() const { return false; }
  virtual void left(Machine&, StorageId) {}
  virtual void arrived(Machine&, StorageId) {}
  virtual void unlocked(Machine&, StorageId) {}
  virtual void before(Machine&, OperatorId) {}  // of the program, not of a recomputation
  virtual void after(Machine&, OperatorId) {}
};

}  // namespace tierpilot::swap
