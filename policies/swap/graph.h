// One training step as a graph: what its operators read and make, and how long and how large.
//
// Three levels: a tensor is one output of one operator; it lies in a storage, which has the bytes;
// handles are the program's names for tensors, of which only the numbers remain here, as events.
// Nothing changes a tensor: an operator that works in place makes a new one (copy on write).
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tierpilot::swap {

using TensorId = uint32_t;
using StorageId = uint32_t;
using OperatorId = uint32_t;
inline constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

struct Operator {
  std::string name{};
  int64_t time_ns = 0;
  std::vector<TensorId> args{};
  std::vector<TensorId> outputs{};
};

struct Tensor {
  OperatorId maker = kNone;  // kNone: a constant, which comes from outside
  StorageId storage = kNone;
  bool owner = true;  // its maker opens the storage; else it is a view into an argument's storage
};

struct Storage {
  int64_t bytes = 0;
  bool constant = false;
  std::vector<TensorId> tensors{};
};

struct Event {
  enum class Kind : uint8_t {
    kConstant,  // id is a storage: it is there from now on
    kRun,       // id is an operator
    kRetain,    // id is a tensor: one more handle
    kDrop,      // id is a tensor: one handle less
  };
  Kind kind;
  uint32_t id;
};

struct Graph {
  std::string name{};
  std::vector<Operator> operators{};  // in the order the program ran them
  std::vector<Tensor> tensors{};
  std::vector<Storage> storages{};
  std::vector<Event> events{};
  std::vector<TensorId> outputs{};  // have a handle at the end, by the first use of its name
  OperatorId backward = kNone;      // the first operator of the backward pass, where known

  const Storage& storage_of(TensorId tensor) const { return storages[tensors[tensor].storage]; }
};

// What the step takes without a limit, when a storage (constants included) goes with its last
// handle: the base that budgets are shares of.
struct Baseline {
  int64_t peak_bytes = 0;
  int64_t time_ns = 0;
};
Baseline baseline(const Graph& graph);

}  // namespace tierpilot::swap
