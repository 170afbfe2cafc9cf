// Where in its program a tensor is: the operator that made it, its shape and type.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <typeindex>
#include <unordered_map>

#include "swap/libtorch/hash.h"

namespace tierpilot::swap::libtorch {

struct Position {
  uint64_t place;  // the same in every run
  uint32_t kind;   // tensors that one operator has made
};

// Not thread-safe.
class Places {
 public:
  Position of(const at::Tensor& tensor);

 private:
  // Names of operators are costly to ask for.
  std::unordered_map<std::type_index, Hash> makers_;
};

}  // namespace tierpilot::swap::libtorch
