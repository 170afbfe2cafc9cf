// The tensors that scopes with the same settings have saved, in the hands of libtierpilot-swap.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "swap/libtorch/keeper.h"
#include "swap/libtorch/places.h"
#include "swap/libtorch/segments.h"
#include "swap/libtorch/stored.h"

namespace tierpilot::swap::libtorch {

// One saved tensor of a storage in the pool.
struct Handle {
  std::shared_ptr<Stored> stored;
  std::optional<Layout> layout;  // none: it is the one that was saved first
  bool used = false;
};

// From any thread. In a child that was forked it takes nothing and gives nothing.
class TensorPool final : public Keeper, public std::enable_shared_from_this<TensorPool> {
 public:
  // `core` is for this pool's use until the process ends.
  TensorPool(tierpilot_swap* core, bool recompute);

  std::unique_ptr<torch::autograd::SavedVariableHooks> hooks() override;
  // Whether segments may be computed again.
  bool recomputes() const { return recompute_; }
  Segments& segments() { return segments_; }
  // Nothing: the tensor cannot leave, or is not worth it.
  std::optional<Handle> save(const at::Tensor& tensor);
  // As it was saved. Throws c10::Error where it was changed in place, or is lost.
  at::Tensor get(Handle& handle);
  void drop(Handle& handle);
  // No operator runs on this thread.
  void finish();

  // The device had no room.
  void failed() { tierpilot_swap_failed(core_); }
  // JSON of tierpilot_swap_describe().
  std::string describe(const char* what) const;
  // Writes the plan file, if there is one. What went wrong; empty: nothing.
  std::string keep();
  bool forked() const;

 private:
  std::shared_ptr<Stored> enter(const at::Tensor& tensor);
  void finish_others(uint64_t node);
  at::Tensor bring(Handle& handle);
  void reap();
  void stay(Stored& stored);
  void warn();
  void tell_held();
  void fetch(Stored& stored);
  void prefetch();
  void mark_used(Handle& handle);
  std::shared_ptr<Stored> forget(const Stored& stored);

  tierpilot_swap* const core_;
  const bool recompute_;
  const uint64_t forks_;
  Segments segments_;
  std::mutex mutex_;
  Places places_;
  std::unordered_map<std::thread::id, uint64_t> unfinished_;  // the node whose saves may be
  std::unordered_map<tierpilot_swap_id, std::shared_ptr<Stored>> by_id_;
  std::map<Stored::Key, std::shared_ptr<Stored>> live_;
  bool backward_ = false;  // something was asked for since the last save
};

}  // namespace tierpilot::swap::libtorch
