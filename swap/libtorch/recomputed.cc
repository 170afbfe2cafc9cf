#include "swap/libtorch/recomputed.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <utility>

#include "swap/libtorch/inside.h"
#include "swap/libtorch/turns.h"

namespace tierpilot::swap::libtorch {
namespace {

using torch::autograd::SavedVariableHooks;

constexpr int kMostAttempts = 4;
constexpr const char* kDiffers =
    "tierpilot::swap: a segment did something else when it was computed again: what it does "
    "depends "
    "on more than its inputs; train without recompute";

// What autograd keeps in the place of a tensor that the segment would have saved.
class PromisedTensor final : public SavedVariableHooks {
 public:
  explicit PromisedTensor(std::shared_ptr<Recomputed> run) : run_(std::move(run)) {}
  ~PromisedTensor() override {
    if (number_) run_->drop(*number_);
  }
  void call_pack_hook(const at::Tensor& tensor) override { number_ = run_->save(tensor); }
  at::Tensor call_unpack_hook() override { return run_->get(*number_); }

 private:
  const std::shared_ptr<Recomputed> run_;
  std::optional<size_t> number_;
};

// In the graph of what is computed again, which nobody goes through. It may outlive the run.
class TensorSavedAgain final : public SavedVariableHooks {
 public:
  explicit TensorSavedAgain(Recomputed& run) : run_(run) {}
  void call_pack_hook(const at::Tensor& tensor) override { run_.save_again(tensor); }
  at::Tensor call_unpack_hook() override {
    TORCH_CHECK(false, "tierpilot::swap: a segment may not run a backward pass of its own");
  }

 private:
  Recomputed& run_;
};

class KeeperAgain final : public Keeper {
 public:
  explicit KeeperAgain(Recomputed& run) : run_(run) {}
  std::unique_ptr<SavedVariableHooks> hooks() override {
    return std::make_unique<TensorSavedAgain>(run_);
  }

 private:
  Recomputed& run_;
};

}  // namespace

Recomputed::Recomputed(const std::shared_ptr<TensorPool>& pool, const Tensors& inputs,
                       ModuleState module, Work again)
    : pool_(pool), module_(std::move(module)), again_(std::move(again)) {
  for (const auto& input : inputs) {
    auto& kept = inputs_.emplace_back();
    if (!input.defined()) continue;
    kept = {.tensor = std::make_shared<SavedTensor>(pool), .requires_grad = input.requires_grad()};
    kept.tensor->call_pack_hook(input);
  }
}

std::unique_ptr<SavedVariableHooks> Recomputed::hooks() {
  return std::make_unique<PromisedTensor>(shared_from_this());
}

void Recomputed::ended(Operation forward) {
  forward_ = std::move(forward);
  random_after_.emplace();
  if (*random_before_ != *random_after_) return;
  random_before_.reset();
  random_after_.reset();
}

size_t Recomputed::save(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  saved_.push_back({.sizes = c10::DimVector(tensor.sizes()), .type = tensor.scalar_type()});
  return saved_.size() - 1;
}

at::Tensor Recomputed::get(size_t number) {
  TORCH_CHECK(!pool_->forked(),
              "tierpilot::swap: this process was forked: run backward where forward ran");
  pool_->segments().pass_ended();
  std::unique_lock turn(turns(), std::defer_lock);
  std::unique_lock lock(mutex_);
  if (needs_turn() && !computed_.contains(number)) {
    lock.unlock();
    turn.lock();
    lock.lock();
  }
  if (!computed_.contains(number)) compute();
  // Once: a graph that is gone through again is computed again.
  return computed_.extract(number).mapped().get();
}

void Recomputed::drop(size_t number) {
  if (pool_->forked()) return;
  decltype(computed_)::node_type ended;  // freed without the lock
  const std::lock_guard lock(mutex_);
  saved_[number].wanted = false;
  ended = computed_.extract(number);
}

void Recomputed::save_again(const at::Tensor& tensor) {
  const at::RecordFunctionGuard not_its_own(false);
  const auto number = saved_again_++;
  TORCH_CHECK(number < saved_.size() && tensor.sizes() == saved_[number].sizes &&
                  tensor.scalar_type() == saved_[number].type,
              kDiffers);
  if (saved_[number].wanted) computed_.emplace(number, tensor);
}

void Recomputed::compute() {
  TORCH_CHECK(forward_.unrepeatable.empty(),
              "tierpilot::swap: a segment cannot be computed again: ", forward_.unrepeatable,
              "; train without recompute");
  forward_.check_unchanged();
  try {
    for (int left = kMostAttempts; !draw_and_run();)
      TORCH_CHECK(--left > 0,
                  "tierpilot::swap: a segment cannot be computed again with its random numbers: "
                  "other threads draw some at the same time; train without recompute");
  } catch (...) {
    computed_.clear();
    throw;
  }
}

// Whether the random numbers were its own: other threads may have drawn some meanwhile.
bool Recomputed::draw_and_run() {
  if (!random_before_) {
    run_again();
    return true;
  }
  const RandomAside aside;
  random_before_->restore();
  run_again();
  // Where it has drawn none now, only others have in the forward pass.
  const RandomState now;
  return now == *random_after_ || now == *random_before_;
}

void Recomputed::run_again() {
  const c10::InferenceMode usual(false);  // of a backward pass: within it nothing is saved
  const auto inputs = inputs_again();
  const ModuleAsThen module(module_);
  const AutocastAsThen autocast(autocast_);
  const c10::AutoGradMode recording(true);
  const Inside inside;
  KeeperAgain keeper(*this);
  const Active active(&keeper);
  OperatorWatch watch(inputs, module_.counted(), forward_);
  saved_again_ = 0;
  computed_.clear();
  again_(inputs);
  TORCH_CHECK(saved_again_ == saved_.size() && forward_.same_as(watch.end()), kDiffers);
}

Recomputed::Tensors Recomputed::inputs_again() const {
  Tensors inputs;
  for (const auto& [kept, requires_grad] : inputs_) {
    auto& input = inputs.emplace_back();
    if (kept) input = kept->call_unpack_hook().detach().set_requires_grad(requires_grad);
  }
  return inputs;
}

}  // namespace tierpilot::swap::libtorch
