// What a module has beside its weights: modes, and the running means that its normalisations count.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace torch::nn {
class Module;
}

namespace tierpilot::swap::libtorch {

// As it is when this is made.
class ModuleState {
 public:
  // nullptr: of a function, whose modules are not known.
  explicit ModuleState(const std::shared_ptr<torch::nn::Module>& module);

  // The same for modules of the same make and mode.
  uint64_t kind() const;
  // What normalisations change without an influence on what they give: buffers of those that train.
  const std::vector<at::Tensor>& counted() const { return counted_; }

 private:
  friend class ModuleAsThen;
  std::vector<std::shared_ptr<torch::nn::Module>> parts_;  // what contains others before them
  std::vector<char> training_;
  std::vector<at::Tensor> counted_;
};

// Modes are as they were then until the end of the block, and what is counted meanwhile is not. One
// at a time.
class ModuleAsThen {
 public:
  explicit ModuleAsThen(const ModuleState& then);
  ~ModuleAsThen();
  ModuleAsThen(const ModuleAsThen&) = delete;
  ModuleAsThen& operator=(const ModuleAsThen&) = delete;

 private:
  void set_modes(const std::vector<char>& training) const;

  const ModuleState& then_;
  std::vector<char> training_;
  std::vector<at::Tensor> values_;
};

}  // namespace tierpilot::swap::libtorch
