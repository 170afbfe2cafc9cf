// Copies between the device and the host: when each of them has ended, and which storages leave
// with theirs. They run beside the operators, one at a time each way.
#pragma once

#include <deque>
#include <limits>
#include <vector>

#include "policies/swap/graph.h"
#include "policies/swap/link/link.h"
#include "policies/swap/machine/outcome.h"

namespace tierpilot::swap {

class LinkCopies {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  LinkCopies(size_t storages, const Link& link) : link_(link), slots_(storages) {}

  // Whether the host has one.
  bool has_copy(StorageId storage, int64_t now_ns) const {
    return slots_[storage].copied_ns <= now_ns;
  }
  // When what comes from the host can be read; 0: it does not come from there.
  int64_t ready_ns(StorageId storage) const { return slots_[storage].ready_ns; }

  // It leaves when its copy out has ended, which begins now unless it is under way.
  void leave(StorageId storage, int64_t bytes, int64_t now_ns);
  // It does not leave: only the copy goes on.
  void stay(StorageId storage) { slots_[storage].leaving = false; }
  void come_back(StorageId storage, int64_t bytes, int64_t now_ns);
  // An operator has made it again.
  void made(StorageId storage) { slots_[storage].ready_ns = 0; }

  // When the next storage leaves; kNever: none is going to.
  int64_t next_departure_ns() const;
  // Forgets ended and unended copies whose storages stay, up to the next one that leaves.
  void skip_stays();
  // The next storage whose copy has ended by now and which leaves with it; kNone: none.
  StorageId take_departed(int64_t now_ns);

  void add_to(Counts& counts) const;

 private:
  struct Slot {
    int64_t ready_ns = 0;
    int64_t copied_ns = kNever;  // from then on the host has a copy
    bool leaving = false;
  };
  struct Departure {
    int64_t end_ns;
    StorageId storage;
  };

  Link link_;
  std::vector<Slot> slots_;
  std::deque<Departure> departures_;  // by their ends
  int64_t out_free_ns_ = 0, in_free_ns_ = 0;
  int64_t copies_out_ = 0, copies_in_ = 0, bytes_out_ = 0, bytes_in_ = 0;
};

}  // namespace tierpilot::swap
