#include "swap/libtorch/stored.h"

#include <ATen/ATen.h>

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
      sizes(tensor.sizes().vec()),
      strides(tensor.strides().vec()) {}

// No inference tensor: the backward pass could not go on with one.
at::Tensor Layout::in(const c10::Storage& storage) const {
  const at::NoGradGuard quiet;
  const c10::InferenceMode usual(false);
  return at::empty({0}, at::device(at::kCPU).dtype(type)).set_(storage, offset, sizes, strides);
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
      storage_(tensor.storage()),
      witness_(tensor.detach()) {}

bool Stored::same_memory() const {
  return storage_.data() == key_.data && static_cast<int64_t>(storage_.nbytes()) == bytes_;
}

void Stored::check() {
  if (witness_.defined() && counter_.current_version() != key_.version)
    spoiled_ = counter_.current_version();
  if (spoiled_) check_version(key_.version, *spoiled_);
  if (!handed_out_) return;
  const auto changes = counter_.current_version() - *handed_out_ + back_.current_version();
  check_version(key_.version, key_.version + changes);
}

void Stored::let_go(Leftovers& leftovers) {
  if (witness_.defined()) {
    const auto now = counter_.current_version();
    if (now != key_.version) spoiled_ = now;
    layout_.emplace(witness_);
    weak_ = storage_.getWeakStorageImpl();
  }
  leftovers.storages.push_back(std::exchange(storage_, {}));
  leftovers.tensors.push_back(std::exchange(witness_, {}));
}

void Stored::come_back(c10::Storage storage) {
  handed_out_.reset();
  back_ = storage ? c10::VariableVersion(0) : c10::VariableVersion();
  storage_ = std::move(storage);
}

at::Tensor Stored::tensor(const std::optional<Layout>& layout) {
  if (!layout && witness_.defined()) return witness_;
  auto made = (layout ? *layout : *layout_).in(storage_);
  made.unsafeGetTensorImpl()->set_version_counter(came_back() ? back_ : counter_);
  if (came_back() && !handed_out_) handed_out_ = counter_.current_version();
  return made;
}

}  // namespace tierpilot::swap::libtorch
