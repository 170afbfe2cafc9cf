// One run of a segment that keeps its inputs, and computes again in the backward pass what it would
// have saved: checkpointing (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016) by
// hooks of saved tensors.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "swap/libtorch/autocast.h"
#include "swap/libtorch/module_state.h"
#include "swap/libtorch/operator_watch.h"
#include "swap/libtorch/random_state.h"
#include "swap/libtorch/saved_tensor.h"

namespace tierpilot::swap::libtorch {

// Backward passes may ask from any thread.
class Recomputed final : public Keeper, public std::enable_shared_from_this<Recomputed> {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Work = std::function<void(const Tensors&)>;

  // `again` computes it from its inputs, which the pool has until then.
  Recomputed(const std::shared_ptr<TensorPool>& pool, const Tensors& inputs, ModuleState module,
             Work again);

  std::unique_ptr<torch::autograd::SavedVariableHooks> hooks() override;
  // What ran, once all has.
  void ended(Operation forward);

  // Of its hooks: the number of a tensor that it saves, the tensor, and that nobody wants it.
  size_t save(const at::Tensor& tensor);
  at::Tensor get(size_t number);
  void drop(size_t number);
  // It saves this when it is computed again.
  void save_again(const at::Tensor& tensor);

 private:
  struct Input {
    std::shared_ptr<SavedTensor> tensor;  // nullptr: it was undefined
    bool requires_grad;
  };
  struct Saved {
    c10::DimVector sizes;
    c10::ScalarType type;
    bool wanted = true;
  };

  bool needs_turn() const { return random_before_ || !module_.counted().empty(); }
  void compute();
  bool draw_and_run();
  void run_again();
  Tensors inputs_again() const;

  const std::shared_ptr<TensorPool> pool_;
  const ModuleState module_;
  const Work again_;
  const Autocast autocast_ = Autocast::now();
  // Of random numbers, around its forward pass; nothing: it drew none.
  std::optional<RandomState> random_before_{std::in_place}, random_after_;
  std::vector<Input> inputs_;
  Operation forward_{.unrepeatable = "it did not get through"};
  std::recursive_mutex mutex_;  // of what is below; a segment's own code may end what it saved
  std::vector<Saved> saved_;
  size_t saved_again_ = 0;
  std::map<size_t, KeptTensor> computed_;
};

}  // namespace tierpilot::swap::libtorch
