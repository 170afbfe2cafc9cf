// A storage that a forward pass has saved, and how tensors lie in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <utility>

#include "swap/tierpilot_swap.h"

namespace tierpilot::swap::libtorch {

// Throws, in autograd's words, that what was saved at version `saved` is at version `now`.
void check_version(uint32_t saved, uint32_t now);

struct Layout {
  explicit Layout(const at::Tensor& tensor);
  at::Tensor in(const c10::Storage& storage) const;

  c10::ScalarType type;
  int64_t offset;
  c10::DimVector sizes, strides;
};

// One for all tensors in it that share a counter of versions and were saved at one version. Several
// counters can be of one storage, as with unsafe_chunk and `.data`: each one's tensors have a copy
// of their own.
class Stored {
 public:
  // Nobody else's storage or counter can have the address while this one is known.
  struct Key {
    const c10::StorageImpl* storage;
    const void* data;  // its memory
    const void* counter;
    uint32_t version;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const at::Tensor& tensor);

  explicit Stored(const at::Tensor& tensor);

  const Key& key() const { return key_; }
  int64_t bytes() const { return bytes_; }
  bool here() const { return static_cast<bool>(storage_); }
  // Its storage has left, and the program holds it all the same.
  bool held() const { return !here() && weak_ && !weak_->expired(); }
  bool came_back() const { return here() && weak_; }
  // here(): whether the storage still has the memory that was saved, and so a copy counts.
  bool same_memory() const;
  // Throws where it, or what was handed out of it, was changed in place: as autograd does, wherever
  // it is.
  void check() const;
  // The copy is complete. The memory is free once what is returned is, which is not to be under a
  // lock: whoever frees it may run anything.
  [[nodiscard]] c10::Storage let_go();
  // It comes back into this; none: it is away again.
  void come_back(c10::Storage storage) { storage_ = std::move(storage); }
  // here(): a tensor in it; without a layout as the first one lay.
  at::Tensor tensor(const std::optional<Layout>& layout) const;

  tierpilot_swap_id id = 0;        // 0: not in the pool, and so here
  size_t handles = 0, unused = 0;  // that autograd has, and those that it has not asked for

 private:
  const c10::VariableVersion counter_;  // keeps its address
  const Key key_;
  const int64_t bytes_;
  const Layout layout_;   // of the first tensor
  c10::Storage storage_;  // none: it is away
  // Once it has left.
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> weak_;
};

}  // namespace tierpilot::swap::libtorch
