// What autograd keeps in the place of a tensor that it saves.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

#include "swap/libtorch/tensor_pool.h"

namespace tierpilot::swap::libtorch {

// A tensor that stays, and is checked as autograd checks what it saves.
class KeptTensor {
 public:
  explicit KeptTensor(const at::Tensor& tensor);
  // Throws where it was changed in place.
  const at::Tensor& get() const;

 private:
  at::Tensor tensor_;
  uint32_t version_;
};

class SavedTensor final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedTensor(std::shared_ptr<TensorPool> pool);
  ~SavedTensor() override;

  void call_pack_hook(const at::Tensor& tensor) override;
  // Throws where it was changed in place, or cannot be had any more.
  at::Tensor call_unpack_hook() override;

 private:
  const std::shared_ptr<TensorPool> pool_;
  std::optional<Handle> handle_;  // in the pool; else the tensor itself is kept
  std::optional<KeptTensor> kept_;
};

}  // namespace tierpilot::swap::libtorch
