#include "swap/libtorch/engine.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/types.h>
#include <torch/version.h>

#include <stdexcept>

#include "swap/libtorch/keeper.h"

#if TORCH_VERSION_MAJOR == 1 && TORCH_VERSION_MINOR < 13
#error "libtierpilot-swap-torch needs libtorch 1.13 or later, whose engine has default hooks"
#endif

namespace tierpilot::swap::libtorch {
namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

thread_local Keeper* keeper_of_thread = nullptr;
thread_local bool was_asked = false;

class HookedEngine final : public Engine {
 public:
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    was_asked = true;
    return keeper_of_thread ? keeper_of_thread->hooks() : nullptr;
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

Keeper* active_keeper() {
  return keeper_of_thread;
}

void activate(Keeper* keeper) {
  keeper_of_thread = keeper;
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
