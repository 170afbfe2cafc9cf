// A storage that a forward pass has saved, and how tensors lie in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/DimVector.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <thread>

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
  bool came_back() const { return here() && left_; }
  // here(): whether the storage still has the memory that was saved, and so a copy counts.
  bool same_memory() const;
  // Throws where it was changed in place before its copy was complete, as far as that is known, or
  // since it came back by whoever got it first.
  void check();
  // The copy is complete. The memory is free once what is returned is, which is not to be under a
  // lock: whoever frees it may run anything.
  [[nodiscard]] c10::Storage let_go();
  // It comes back into this; none: it is away again.
  void come_back(c10::Storage storage);
  // here(): a tensor in it; without a layout as the first one lay.
  at::Tensor tensor(const std::optional<Layout>& layout);

  tierpilot_swap_id id = 0;        // 0: not in the pool, and so here
  size_t handles = 0, unused = 0;  // that autograd has, and those that it has not asked for

 private:
  const c10::VariableVersion counter_;  // keeps its address
  const Key key_;
  const int64_t bytes_;
  const Layout layout_;   // of the first tensor
  c10::Storage storage_;  // none: it is away
  bool left_ = false;     // once at least
  // Whoever saved it let go of it, and so was changing nothing: what changes it later comes after
  // its copy. Of another thread that is not known.
  bool quiet_ = true;
  const std::thread::id thread_ = std::this_thread::get_id();  // that saved it
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> weak_;
  // Of what came back: the counter of all tensors in it, and at which version the first one's was
  // when one was handed out. Changes of those count with the one or, in libtorch 1.13, the other.
  c10::VariableVersion back_;
  std::optional<uint32_t> handed_out_;
  std::optional<uint32_t> spoiled_;  // the version that it was changed to too early
};

}  // namespace tierpilot::swap::libtorch
