#include "swap/libtorch/stored.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <cstring>
#include <utility>

namespace tierpilot::swap::libtorch {
namespace {

const c10::VariableVersion& counter_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->version_counter();
}

// All that a VariableVersion is, but tells nobody: where its counter is.
const void* identity(const c10::VariableVersion& counter) {
  const void* address = nullptr;
  static_assert(sizeof counter == sizeof address);
  std::memcpy(&address, &counter, sizeof address);
  return address;
}

}  // namespace

void check_version(uint32_t saved, uint32_t now) {
  TORCH_CHECK(saved == now,
              "one of the variables needed for gradient computation has been modified by an "
              "inplace operation: it is at version ",
              now, "; expected version ", saved, " instead");
}

Layout::Layout(const at::Tensor& tensor)
    : type(tensor.scalar_type()),
      offset(tensor.storage_offset()),
      sizes(tensor.sizes()),
      strides(tensor.strides()) {}

// No inference tensor: the backward pass could not go on with one.
at::Tensor Layout::in(const c10::Storage& storage) const {
  const c10::InferenceMode usual(false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage),
                                                       c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                       c10::scalarTypeToTypeMeta(type));
  made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return made;
}

Stored::Key Stored::key_of(const at::Tensor& tensor) {
  const auto& counter = counter_of(tensor);
  return {.storage = tensor.storage().unsafeGetStorageImpl(),
          .data = tensor.storage().data(),
          .counter = identity(counter),
          .version = counter.current_version()};
}

Stored::Stored(const at::Tensor& tensor)
    : counter_(counter_of(tensor)),
      key_(key_of(tensor)),
      bytes_(static_cast<int64_t>(tensor.storage().nbytes())),
      layout_(tensor),
      storage_(tensor.storage()) {}

bool Stored::same_memory() const {
  return storage_.data() == key_.data && static_cast<int64_t>(storage_.nbytes()) == bytes_;
}

void Stored::check() const {
  check_version(key_.version, counter_.current_version());
}

c10::Storage Stored::let_go() {
  if (!weak_) weak_ = storage_.getWeakStorageImpl();
  return std::exchange(storage_, {});
}

// Who changes it is counted as who changes the one that was saved.
at::Tensor Stored::tensor(const std::optional<Layout>& layout) const {
  auto made = (layout ? *layout : layout_).in(storage_);
  made.unsafeGetTensorImpl()->set_version_counter(counter_);
  return made;
}

}  // namespace tierpilot::swap::libtorch
