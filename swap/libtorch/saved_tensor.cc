#include "swap/libtorch/saved_tensor.h"

#include <ATen/ATen.h>

namespace tierpilot::swap::libtorch {

// Detached: with its gradient's function it would hold what holds it. A parameter has none, and may
// get other data, which count as they do without.
KeptTensor::KeptTensor(const at::Tensor& tensor)
    : tensor_(tensor.is_leaf() && tensor.requires_grad() ? tensor : tensor.detach()),
      version_(static_cast<uint32_t>(tensor._version())) {}

const at::Tensor& KeptTensor::get() const {
  check_version(version_, static_cast<uint32_t>(tensor_._version()));
  return tensor_;
}

SavedTensor::SavedTensor(std::shared_ptr<TensorPool> pool) : pool_(std::move(pool)) {
  pool_->segments().saved();
}

SavedTensor::~SavedTensor() {
  if (handle_) pool_->drop(*handle_);
  pool_->segments().dropped();
}

void SavedTensor::call_pack_hook(const at::Tensor& tensor) {
  handle_ = pool_->save(tensor);
  if (!handle_) kept_.emplace(tensor);
}

at::Tensor SavedTensor::call_unpack_hook() {
  pool_->segments().pass_ended();
  return handle_ ? pool_->get(*handle_) : kept_->get();
}

}  // namespace tierpilot::swap::libtorch
