#include "swap/libtorch/stored.h"

#include <ATen/ATen.h>

#include <utility>

namespace tierpilot::swap::libtorch {

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

at::Tensor Layout::in(const c10::Storage& storage) const {
  const at::NoGradGuard quiet;
  return at::empty({0}, at::device(at::kCPU).dtype(type)).set_(storage, offset, sizes, strides);
}

Stored::Key Stored::key_of(const at::Tensor& tensor) {
  return {.storage = tensor.storage().unsafeGetStorageImpl(),
          .version = static_cast<uint32_t>(tensor._version())};
}

Stored::Stored(const at::Tensor& tensor)
    : key_(key_of(tensor)),
      bytes_(static_cast<int64_t>(tensor.storage().nbytes())),
      storage_(tensor.storage()),
      witness_(tensor.detach()) {}

void Stored::check() {
  if (witness_.defined() && static_cast<uint32_t>(witness_._version()) != key_.version)
    spoiled_ = static_cast<uint32_t>(witness_._version());
  if (spoiled_) check_version(key_.version, *spoiled_);
}

void Stored::let_go(Leftovers& leftovers) {
  if (witness_.defined()) {
    const auto now = static_cast<uint32_t>(witness_._version());
    if (now != key_.version) spoiled_ = now;
    layout_.emplace(witness_);
    weak_ = storage_.getWeakStorageImpl();
  }
  leftovers.storages.push_back(std::exchange(storage_, {}));
  leftovers.tensors.push_back(std::exchange(witness_, {}));
}

at::Tensor Stored::tensor(const std::optional<Layout>& layout) const {
  if (layout) return layout->in(storage_);
  return witness_.defined() ? witness_ : layout_->in(storage_);
}

}  // namespace tierpilot::swap::libtorch
