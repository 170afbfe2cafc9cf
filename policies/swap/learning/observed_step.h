// One training step as a library sees it from its hooks: when a storage was saved for the backward
// pass, when it was asked for again, and what the device held between.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/swap/graph.h"

namespace tierpilot::swap {

struct SavedStorage {
  uint64_t place = 0;  // what it is by its place in the program: operator, layer, shape, order
  uint32_t kind = 0;   // tensors of one layer type and operator
  int64_t bytes = 0;
  bool convolution_input = false;
  // The program goes on holding it: to copy it away would free nothing.
  bool held = false;
};

// Events are the saves, in order, and then the first uses. Interval i ends with event i; the last
// one follows the last event.
struct ObservedStep {
  std::vector<SavedStorage> saves{};
  std::vector<uint32_t> uses{};  // indices of saves, in the order of their first use
  std::vector<int64_t> time_ns{};
  std::vector<int64_t> other_bytes{};  // most bytes of the device in what is none of the saves

  size_t events() const { return saves.size() + uses.size(); }
  int64_t compute_ns() const;
  // Most bytes that the device has to hold at once if everything that can be away is.
  int64_t least_bytes() const;
  // Most bytes that the device holds at once if nothing leaves.
  int64_t kept_bytes() const;
  // Bytes of all that is saved.
  int64_t saved_bytes() const;
};

// The same as a graph: each interval is an operator that makes what is saved at its end, reads what
// was asked for at its begin, and takes `other_bytes` while it runs. Storage i + 1 of the graph is
// save i (i without `held` ones, which belong to the rest). `storage_of` gives the storage of each
// save, or kNone.
struct StepGraph {
  Graph graph{};
  std::vector<StorageId> storage_of{};
};
StepGraph graph_of(const ObservedStep& step);

}  // namespace tierpilot::swap
