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

void Stored::check() {
  if ((!left_ || !quiet_) && counter_.current_version() != key_.version)
    spoiled_ = counter_.current_version();
  if (spoiled_) check_version(key_.version, *spoiled_);
  if (!handed_out_) return;
  const auto changes = counter_.current_version() - *handed_out_ + back_.current_version();
  check_version(key_.version, key_.version + changes);
}

c10::Storage Stored::let_go() {
  if (!std::exchange(left_, true)) {
    quiet_ = std::this_thread::get_id() == thread_;  // operators count a change behind it
    const auto now = counter_.current_version();
    if (now != key_.version) spoiled_ = now;
    weak_ = storage_.getWeakStorageImpl();
  }
  return std::exchange(storage_, {});
}

void Stored::come_back(c10::Storage storage) {
  handed_out_.reset();
  back_ = storage ? c10::VariableVersion(0) : c10::VariableVersion();
  storage_ = std::move(storage);
}

at::Tensor Stored::tensor(const std::optional<Layout>& layout) {
  auto made = (layout ? *layout : layout_).in(storage_);
  made.unsafeGetTensorImpl()->set_version_counter(came_back() ? back_ : counter_);
  if (came_back() && !handed_out_) handed_out_ = counter_.current_version();
  return made;
}

}  // namespace tierpilot::swap::libtorch
