#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "swap/libtorch/inside.h"
#include "swap/libtorch/operator_watch.h"
#include "swap/libtorch/recomputed.h"
#include "swap/libtorch/tensor_pool.h"
#include "swap/libtorch/tierpilot_swap_torch_segment.h"
#include "swap/libtorch/turns.h"

namespace tierpilot::swap::libtorch {
namespace {

TensorPool* recomputing_pool() {
  auto* const pool = dynamic_cast<TensorPool*>(active_keeper());
  return pool && pool->recomputes() && !pool->forked() ? pool : nullptr;
}

bool can_be_kept(const at::Tensor& input) {
  return !input.defined() || (input.device().is_cpu() && !input.is_inference() &&
                              !input.is_nested() && !is_others_memory(input));
}

// What tells a segment from others, and from itself with other shapes.
uint64_t kind_of(const SegmentWork& work, const ModuleState& module) {
  Hash hash;
  hash.add(work.kind).add(module.kind());
  for (const auto& input : work.inputs) {
    if (!input.defined()) continue;
    hash.add(static_cast<uint64_t>(input.scalar_type())).add(input.requires_grad() ? 1 : 0);
    for (const auto size : input.sizes()) hash.add(static_cast<uint64_t>(size));
  }
  return hash.value();
}

int64_t bytes_of(const SegmentTensors& tensors) {
  int64_t bytes = 0;
  for (const auto& tensor : tensors)
    if (tensor.defined()) bytes += tensor.numel() * static_cast<int64_t>(tensor.element_size());
  return bytes;
}

// Told to the library as one that begins, and at its end.
class OpenSegment {
 public:
  OpenSegment(Segments& segments, uint64_t kind, int64_t input_bytes)
      : segments_(segments), again_(segments.begin(kind, input_bytes)) {}
  // An exception says nothing of the next time.
  ~OpenSegment() { segments_.end(possible_ || std::uncaught_exceptions() > exceptions_); }
  OpenSegment(const OpenSegment&) = delete;
  OpenSegment& operator=(const OpenSegment&) = delete;

  bool again() const { return again_; }
  void set_possible(bool possible) { possible_ = possible; }

 private:
  Segments& segments_;
  const bool again_;
  bool possible_ = false;
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace

struct SegmentRun::Impl {
  Impl(TensorPool& pool, SegmentWork& work, const ModuleState& module,
       std::unique_lock<std::recursive_mutex> its_turn)
      : turn(std::move(its_turn)),
        open(pool.segments(), kind_of(work, module), bytes_of(work.inputs)) {
    for (const auto& input : work.inputs)
      if (input.defined()) own.push_back(input);
    for (const auto& input : own) versions.push_back(input._version());
    if (open.again()) {
      recomputed = std::make_shared<Recomputed>(pool.shared_from_this(), work.inputs, module,
                                                std::move(work.again));
      keeper.emplace(recomputed.get());
    }
    inside.emplace();
    watch.emplace(own, module.counted());
  }

  bool inputs_unchanged() const {
    for (size_t at = 0; at < versions.size(); ++at)
      if (own[at]._version() != versions[at]) return false;
    return true;
  }

  const std::unique_lock<std::recursive_mutex> turn;
  OpenSegment open;
  std::vector<at::Tensor> own;    // inputs
  std::vector<int64_t> versions;  // of those
  std::shared_ptr<Recomputed> recomputed;
  std::optional<Active> keeper;
  std::optional<Inside> inside;
  std::optional<OperatorWatch> watch;
};

bool SegmentRun::counts() {
  return !Inside::now() && c10::GradMode::is_enabled() && recomputing_pool();
}

SegmentRun::SegmentRun(SegmentWork work) {
  if (!std::ranges::all_of(work.inputs, can_be_kept)) return;
  std::unique_lock turn(turns(), std::try_to_lock);
  if (!turn) return;  // it just runs beside another one
  const ModuleState module(work.module);
  impl_ = std::make_unique<Impl>(*recomputing_pool(), work, module, std::move(turn));
}

SegmentRun::~SegmentRun() = default;

void SegmentRun::end() {
  if (!impl_ || !impl_->watch) return;
  auto ran = impl_->watch->end();
  impl_->watch.reset();
  if (!impl_->inputs_unchanged()) ran.unrepeatable = "it changes its inputs";
  impl_->open.set_possible(ran.unrepeatable.empty());
  if (impl_->recomputed) impl_->recomputed->ended(std::move(ran));
}

}  // namespace tierpilot::swap::libtorch
