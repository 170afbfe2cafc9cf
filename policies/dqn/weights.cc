#include "policies/dqn/weights.h"

namespace tierpilot {

WeightsMailbox::~WeightsMailbox() {
  delete fresh_.load();
  delete done_with_.load();
}

void WeightsMailbox::put(Pointer weights) {
  delete done_with_.exchange(nullptr);
  delete fresh_.exchange(new Pointer(std::move(weights)));
}

const Weights* WeightsMailbox::newest() {
  if (Pointer* fresh = fresh_.exchange(nullptr)) {
    // Not null only when put() was overtaken in its middle.
    delete done_with_.exchange(current_.release());
    current_.reset(fresh);
  }
  return current_ ? current_->get() : nullptr;
}

}  // namespace tierpilot
