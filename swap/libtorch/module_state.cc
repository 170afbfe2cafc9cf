#include "swap/libtorch/module_state.h"

// The headers of modules lack those of functions.
#include <torch/nn/functional/batchnorm.h>
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

#include <utility>

#include "swap/libtorch/hash.h"

namespace tierpilot::swap::libtorch {
namespace {

namespace nn = torch::nn;
using Parts = std::vector<std::shared_ptr<nn::Module>>;

template <class... Kinds>
bool is_any_of(const nn::Module& module) {
  return (dynamic_cast<const Kinds*>(&module) || ...);
}

bool counts(const nn::Module& module) {
  return module.is_training() &&
         is_any_of<nn::BatchNorm1dImpl, nn::BatchNorm2dImpl, nn::BatchNorm3dImpl,
                   nn::InstanceNorm1dImpl, nn::InstanceNorm2dImpl, nn::InstanceNorm3dImpl>(module);
}

std::vector<char> modes_of(const Parts& parts) {
  std::vector<char> training;
  for (const auto& part : parts) training.push_back(part->is_training());
  return training;
}

}  // namespace

ModuleState::ModuleState(const std::shared_ptr<nn::Module>& module) {
  if (!module) return;
  parts_ = {module};
  for (auto& part : module->modules(false)) parts_.push_back(std::move(part));
  training_ = modes_of(parts_);
  for (const auto& part : parts_)
    if (counts(*part))
      for (auto& buffer : part->buffers(false))
        if (buffer.defined()) counted_.push_back(std::move(buffer));
}

uint64_t ModuleState::kind() const {
  Hash hash;
  for (const auto& part : parts_) {
    const auto& module = *part;
    hash.add(typeid(module).name());
  }
  if (!training_.empty()) hash.add(training_.front());
  return hash.value();
}

ModuleAsThen::ModuleAsThen(const ModuleState& then)
    : then_(then), training_(modes_of(then.parts_)) {
  for (const auto& buffer : then_.counted_) values_.push_back(buffer.variable_data().clone());
  if (training_ != then_.training_) set_modes(then_.training_);
}

ModuleAsThen::~ModuleAsThen() {
  if (training_ != then_.training_) set_modes(training_);
  // Not of the same version counter: for a backward pass nothing has changed.
  for (size_t at = 0; at < values_.size(); ++at)
    then_.counted_[at].variable_data().copy_(values_[at]);
}

// Modules set those within them too, which come after them.
void ModuleAsThen::set_modes(const std::vector<char>& training) const {
  for (size_t at = 0; at < training.size(); ++at) then_.parts_[at]->train(training[at] != 0);
}

}  // namespace tierpilot::swap::libtorch
