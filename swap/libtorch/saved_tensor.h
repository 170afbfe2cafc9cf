// What autograd keeps in the place of a tensor that it saves.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

#include "swap/libtorch/tensor_pool.h"

namespace tierpilot::swap::libtorch {

class SavedTensor final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedTensor(std::shared_ptr<TensorPool> pool) : pool_(std::move(pool)) {}
  ~SavedTensor() override;

  void call_pack_hook(const at::Tensor& tensor) override;
  // Throws where it was changed in place, or cannot be had any more.
  at::Tensor call_unpack_hook() override;

 private:
  const std::shared_ptr<TensorPool> pool_;
  std::optional<Handle> handle_;  // in the pool; else the tensor itself is kept
  at::Tensor kept_;
  uint32_t kept_version_ = 0;
};

}  // namespace tierpilot::swap::libtorch
