#include "swap/libtorch/engine.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/types.h>
#include <torch/version.h>

#include <stdexcept>
#include <utility>

#include "swap/libtorch/saved_tensor.h"

#if TORCH_VERSION_MAJOR == 1 && TORCH_VERSION_MINOR < 13
#error "libtierpilot-swap-torch needs libtorch 1.13 or later, whose engine has default hooks"
#endif

namespace tierpilot::swap::libtorch {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

thread_local TensorPool* pool_of_thread = nullptr;
thread_local bool was_asked = false;

class HookedEngine final : public Engine {
 public:
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    was_asked = true;
    if (!pool_of_thread) return nullptr;
    return std::make_unique<SavedTensor>(pool_of_thread->shared_from_this());
  }
};

// Never destroyed: threads may compute gradients until the process has ended.
Engine& hooked_engine() {
  static auto* const engine = new HookedEngine;
  return *engine;
}

// Whether an operator that saves its result asks the engine.
bool is_asked() {
  const c10::InferenceMode usual(false);
  const torch::AutoGradMode recording(true);
  was_asked = false;
  const auto saved = torch::ones({1}, torch::requires_grad()).exp();
  return was_asked && saved.defined();
}

}  // namespace

TensorPool* active_pool() {
  return pool_of_thread;
}

void activate(TensorPool* pool) {
  pool_of_thread = pool;
}

void require_hooks() {
  auto& now = Engine::get_default_engine();
  if (&now == &hooked_engine()) return;
  if (&now != &Engine::get_base_engine())
    throw std::runtime_error(
        "tierpilot::swap: this process has another engine of autograd than libtorch's own, as "
        "Python's PyTorch brings it; use tierpilot.swap of Python there");
  torch::autograd::set_default_engine_stub(&hooked_engine);
  if (is_asked()) return;
  torch::autograd::set_default_engine_stub(&Engine::get_base_engine);
  throw std::runtime_error("tierpilot::swap: libtorch " TORCH_VERSION
                           " does not ask its engine what to save; link the one that "
                           "libtierpilot-swap-torch was built for");
}

}  // namespace tierpilot::swap::libtorch
