// Who says what autograd keeps in the place of the tensors that it saves on a thread.
#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <memory>

namespace tierpilot::swap::libtorch {

class Keeper {
 public:
  // For the next tensor.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> hooks() = 0;

 protected:
  ~Keeper() = default;
};

// The one that counts on this thread; nullptr: none.
Keeper* active_keeper();
void activate(Keeper* keeper);

// It counts on this thread until the end of the block.
class Active {
 public:
  explicit Active(Keeper* keeper) : outer_(active_keeper()) { activate(keeper); }
  ~Active() { activate(outer_); }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

 private:
  Keeper* const outer_;
};

}  // namespace tierpilot::swap::libtorch
