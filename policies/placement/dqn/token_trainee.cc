#include "policies/placement/dqn/token_trainee.h"

#include <algorithm>

#include "policies/placement/networks/library.h"

namespace tierpilot {
namespace {

bool all_zero(const std::vector<float>& weights) {
  return std::ranges::all_of(weights, [](float weight) { return weight == 0; });
}

}  // namespace

TokenModule& TokenTrainee::module() const {
  if (!module_) {
    module_ = network_library().token_module(learning_rate_, seed_);
    if (!all_zero(begins_.weights())) module_->set_weights(begins_.weights());
  }
  return *module_;
}

Status TokenTrainee::set_weights(const std::vector<float>& weights) {
  if (Status status = begins_.set_weights(weights); !status) return status;
  if (module_ && all_zero(weights))
    module_.reset();
  else if (module_)
    module_->set_weights(weights);
  return {};
}

}  // namespace tierpilot
