#include "swap/libtorch/random_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace tierpilot::swap::libtorch {

RandomState::RandomState() {
  auto all = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(all.mutex());
  state_ = all.get_state();
}

void RandomState::restore() const {
  auto all = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(all.mutex());
  all.set_state(state_);
}

}  // namespace tierpilot::swap::libtorch
