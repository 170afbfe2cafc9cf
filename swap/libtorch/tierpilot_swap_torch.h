// Tensors that leave memory while a model of libtorch trains: the same as tierpilot.swap of Python.
//
//   #include <tierpilot_swap_torch.h>       // -ltierpilot-swap-torch
//   {
//     tierpilot::swap::Scope scope({.budget = "4GiB"});
//     loss = model->forward(x).sum();
//   }
//   loss.backward();
//
// What autograd saves on this thread while a Scope stands may leave for slower memory, and is back
// when a backward pass asks for it, on whichever thread. Gradients are the same to the last bit. A
// Scope may stand around one forward pass or around all of a training: scopes with equal settings
// share one pool and what was learned, until the process ends. The innermost one counts.
//
// A saved tensor that was changed in place raises autograd's error, wherever it is. Changes behind
// autograd's back, through `.data` or another name of the memory, count until a tensor leaves, and
// are in what is saved after them. A parameter that gets other data (`set_data`) counts with these,
// any other tensor as it was saved. Memory that is not torch's own (from_blob) stays. Freeing or
// replacing the memory of a saved storage
// (`storage.resize_(0)`, `set_data_ptr`) while it is copied is undefined; from the end of the copy
// until it leaves, what is there then counts. Each tensor that shares a storage without its
// counter of versions, as the gates of LSTM and GRU do, has a copy of the whole storage.
//
// Needs libtorch 1.13 or later, and the engine of autograd that libtorch comes with: within Python
// use tierpilot.swap. Tensors of a GPU stay where they are.
#pragma once

#include <exception>
#include <memory>
#include <string>

namespace tierpilot::swap {

namespace libtorch {
class Keeper;
class TensorPool;
class RandomState;
}  // namespace libtorch

struct ScopeSettings {
  // Of the process's private resident memory: "4GiB"; empty: TIERPILOT_SWAP_BUDGET, which a task
  // with room for swapping has, and of which each worker of torchrun takes its part.
  std::string budget{};
  // "swap", "swap-all", "capuchin", "q-published", "checkpoint" (every segment is computed again)
  // or "none".
  std::string policy = "swap";
  // Where tensors go, "node1=2GiB,dir:/srv/slow=16GiB"; empty: TIERPILOT_SWAP_TIERS, or without
  // that other NUMA nodes, then the directory TIERPILOT_SWAP_DIR or /var/tmp.
  std::string tiers{};
  // Segments (tierpilot_swap_torch_segment.h) may be computed again, where that is faster.
  bool recompute = false;
  // What the next run starts from, written when the process ends; empty: none.
  std::string plan_file{};
};

class [[gnu::visibility("default")]] Scope {
 public:
  // The first one with these settings measures the tiers, which takes some 0.2 s. Throws
  // std::invalid_argument where a setting is wrong, and std::runtime_error where this libtorch asks
  // nobody what to save, or asks somebody else.
  explicit Scope(const ScopeSettings& settings);
  // On the thread that it was made on, the last one first.
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // What `work()` returns: a step that can be repeated, from clearing the gradients to the backward
  // pass. Where memory runs out it is run again with everything away, random numbers as before;
  // running means of normalisations count it twice then.
  template <class Work>
  auto step(const Work& work, int tries = 2) {
    const auto random = random_state();
    for (int attempt = 1;; ++attempt) {
      try {
        return work();
      } catch (const std::exception& error) {
        if (attempt >= tries || !ran_out_of_memory(error)) throw;
      }
      begin_again(*random);
    }
  }

  // JSON objects and a list: what tierpilot-swap(1) names, the tiers as measured, and the last
  // whole step, tensor by tensor.
  std::string statistics() const;
  std::string tiers() const;
  std::string last_step() const;

 private:
  static std::shared_ptr<libtorch::RandomState> random_state();
  static bool ran_out_of_memory(const std::exception& error);
  void begin_again(libtorch::RandomState & random);

  std::shared_ptr<libtorch::TensorPool> pool_;
  libtorch::Keeper* outer_;
};

}  // namespace tierpilot::swap
