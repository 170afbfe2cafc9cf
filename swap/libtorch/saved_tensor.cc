#include "swap/libtorch/saved_tensor.h"

#include <ATen/ATen.h>

namespace tierpilot::swap::libtorch {

SavedTensor::~SavedTensor() {
  if (handle_) pool_->drop(*handle_);
}

void SavedTensor::call_pack_hook(const at::Tensor& tensor) {
  handle_ = pool_->save(tensor);
  if (handle_) return;
  kept_ = tensor.detach();  // with its gradient's function it would hold what holds it
  kept_version_ = static_cast<uint32_t>(tensor._version());
}

at::Tensor SavedTensor::call_unpack_hook() {
  if (handle_) return pool_->get(*handle_);
  check_version(kept_version_, static_cast<uint32_t>(kept_._version()));
  return kept_;
}

}  // namespace tierpilot::swap::libtorch
