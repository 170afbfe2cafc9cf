// A device with a memory budget that replays a step: which storages are there, what it costs to
// have one there again, and what the clock says. A manager decides what leaves.
//
// The rules of recomputing are those of the simulator of Dynamic Tensor Rematerialization (Kirisame
// et al., ICLR 2021). Copies over the link run beside the operators: what leaves counts until
// its copy ends, what returns counts from its copy's start.
#pragma once

#include <deque>
#include <vector>

#include "policies/swap/graph.h"
#include "policies/swap/link/link.h"
#include "policies/swap/outcome.h"

namespace tierpilot::swap {

struct Limits {
  int64_t budget_bytes = 0;
  // A replay whose time exceeds this many times the base time has failed.
  double thrash_limit = 2;
  // Whether operators can be run again; where they cannot, what leaves has to be copied.
  bool recompute = true;
  Link link{};
};

class Machine;

// Decides what leaves the device, and hears of what happens there.
class Manager {
 public:
  virtual ~Manager() = default;
  // Drops, swaps or waits until machine.fits(bytes); false when it cannot: the replay fails.
  virtual bool make_room(Machine& machine, int64_t bytes) = 0;
  // Whether a storage leaves at once when its last handle goes.
  virtual bool frees_unreferenced() const { return false; }
  virtual void left(Machine&, StorageId) {}
  virtual void arrived(Machine&, StorageId) {}
  virtual void unlocked(Machine&, StorageId) {}
  virtual void before(Machine&, OperatorId) {}  // of the program, not of a recomputation
  virtual void after(Machine&, OperatorId) {}
};

class Machine {
 public:
  Machine(const Graph& graph, const Limits& limits, Manager& manager);
  Outcome run();

  const Graph& graph() const { return graph_; }
  const Limits& limits() const { return limits_; }
  int64_t clock_ns() const { return clock_ns_; }
  int64_t used_bytes() const { return used_; }
  bool fits(int64_t bytes) const { return bytes <= limits_.budget_bytes - used_; }
  bool resident(StorageId storage) const { return slots_[storage].resident; }
  bool has_copy(StorageId storage) const { return slots_[storage].copied_ns <= clock_ns_; }
  bool present(TensorId tensor) const {
    return made_[tensor] && resident(graph_.tensors[tensor].storage);
  }
  // Whether the tensor can be had without recomputing.
  bool kept(TensorId tensor) const {
    return made_[tensor] &&
           (resident(graph_.tensors[tensor].storage) || has_copy(graph_.tensors[tensor].storage));
  }
  bool evictable(StorageId storage) const { return slots_[storage].listed; }
  // Whether the program has a handle on it.
  bool referenced(StorageId storage) const { return slots_[storage].handles > 0; }
  int64_t last_access_ns(StorageId storage) const { return slots_[storage].accessed_ns; }
  // Time of the operators that made its tensors so far.
  int64_t cost_ns(StorageId storage) const { return slots_[storage].cost_ns; }
  bool has_run(OperatorId op) const { return op < runs_; }

  // The evictable storages in the order in which they became so: kNone ends it.
  StorageId first_candidate() const { return candidates_.front().next; }
  StorageId next_candidate(StorageId storage) const { return candidates_[storage + 1].next; }

  // For managers. `storage` has to be evictable.
  void drop(StorageId storage);
  // The host's copy is of no more use.
  void forget_copy(StorageId storage);
  void swap_out(StorageId storage);
  // Begins to bring back a storage that has a copy and fits.
  void swap_in(StorageId storage);
  // Until the next copy out has ended; false when there is none.
  bool wait();
  // How long that would take; the largest number when there is none.
  int64_t departs_in_ns() const;
  // Notes copies that have ended by now.
  void settle();

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  struct Slot {
    int64_t accessed_ns = 0, cost_ns = 0;
    int64_t ready_ns = 0;        // when its copy in has ended
    int64_t copied_ns = kNever;  // from then on the host has a copy
    int64_t handles = 0;
    uint32_t locks = 0;
    OperatorId last_maker = kNone;  // whose time is in cost_ns already
    bool resident = false, pinned = false, listed = false;
    bool leaving = false;  // resident until its copy out has ended
  };
  struct Frame {
    OperatorId op;
    size_t missing;  // its absent arguments stand in missing_ from here on
    bool first;
  };
  struct Neighbours {
    StorageId previous = kNone, next = kNone;
  };
  struct Departure {
    int64_t end_ns;
    StorageId storage;
  };

  bool handle(const Event& event);
  bool declare(StorageId storage);
  bool execute(OperatorId op, bool first);
  void enter(OperatorId op, bool first);
  bool finish(const Frame& frame);
  bool fetch(TensorId tensor);
  bool bring_back(TensorId tensor);
  bool allocate(int64_t bytes, const std::string& what);
  void place(TensorId tensor);
  void lock(StorageId storage);
  void unlock(StorageId storage);
  void list(StorageId storage);
  void unlist(StorageId storage);
  void release(StorageId storage);
  void stall_until(int64_t ns);
  bool fail(std::string reason);

  const Graph& graph_;
  Limits limits_;
  Manager& manager_;
  Outcome outcome_;
  int64_t clock_ns_ = 1, used_ = 0, first_ns_ = 0;
  int64_t out_free_ns_ = 0, in_free_ns_ = 0;
  OperatorId runs_ = 0;
  std::vector<Slot> slots_;
  std::vector<char> made_;
  std::vector<Neighbours> candidates_;  // a ring with its anchor at 0, storage s at s + 1
  std::vector<Frame> frames_;
  std::vector<TensorId> missing_;
  std::deque<Departure> departures_;
};

}  // namespace tierpilot::swap
