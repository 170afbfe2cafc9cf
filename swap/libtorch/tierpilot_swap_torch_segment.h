// Segments: parts of a forward pass that may be computed again in the backward pass, instead of
// what they save being kept or copied.
//
//   #include <tierpilot_swap_torch.h>
//   #include <tierpilot_swap_torch_segment.h>
//
//   tierpilot::swap::Scope scope({.budget = "4GiB", .recompute = true});
//   for (auto& block : blocks) x = tierpilot::swap::segment(block, x);
//
// Of the innermost Scope of the thread; where there is none, or it does not recompute, where no
// gradients are wanted, and within another segment, `segment(block, x...)` is `block(x...)`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace tierpilot::swap {

// What `segment` is made of.
namespace libtorch {

using SegmentTensors = std::vector<at::Tensor>;

struct SegmentWork {
  const char* kind;                           // the same in every run
  std::shared_ptr<torch::nn::Module> module;  // nullptr: not known
  SegmentTensors inputs;
  std::function<void(const SegmentTensors&)> again;  // computes it from these
};

// Stands around a segment's forward pass.
class [[gnu::visibility("default")]] SegmentRun {
 public:
  // Whether a segment that begins on this thread is more than a call.
  static bool counts();
  explicit SegmentRun(SegmentWork work);
  // Without an `end` before it did not get through.
  ~SegmentRun();
  void end();
  SegmentRun(const SegmentRun&) = delete;
  SegmentRun& operator=(const SegmentRun&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

template <class Block, class... Inputs>
decltype(auto) run_block(Block& block, Inputs&... inputs) {
  if constexpr (requires { block->forward(inputs...); })
    return block->forward(inputs...);
  else if constexpr (std::is_invocable_v<Block&, Inputs&...>)
    return block(inputs...);
  else
    return block.forward(inputs...);
}

template <class Block>
std::shared_ptr<torch::nn::Module> module_of(Block& block) {
  using Module = torch::nn::Module;
  if constexpr (std::is_convertible_v<Block, std::shared_ptr<Module>>)
    return block;
  else if constexpr (std::is_convertible_v<Block, Module*>)
    return {std::shared_ptr<Module>(), static_cast<Module*>(block)};
  else if constexpr (requires { std::shared_ptr<Module>(block.ptr()); })
    return block.ptr();
  else
    return nullptr;
}

// `work(tensor)` for each of `inputs` that is one.
template <class Work, class... Inputs>
void for_tensors(const Work& work, Inputs&... inputs) {
  const auto each = [&work](auto& input) {
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(input)>, at::Tensor>) work(input);
  };
  (each(inputs), ...);
}

// Holds none of the tensors.
template <class Block, class... Inputs>
SegmentWork segment_work(Block& block, const Inputs&... inputs) {
  SegmentWork work{
      .kind = typeid(Block).name(), .module = module_of(block), .inputs = {}, .again = {}};
  std::tuple<Inputs...> others(inputs...);
  const auto take = [&work](at::Tensor& tensor) {
    work.inputs.push_back(std::exchange(tensor, at::Tensor()));
  };
  std::apply([&take](auto&... each) { for_tensors(take, each...); }, others);
  // A graph that is kept runs it several times, each as it was the first time.
  work.again = [block, others](const SegmentTensors& tensors) {
    auto given = others;
    auto fresh = block;
    size_t next = 0;
    const auto put = [&](at::Tensor& tensor) { tensor = tensors[next++]; };
    std::apply(
        [&](auto&... each) {
          for_tensors(put, each...);
          run_block(fresh, each...);
        },
        given);
  };
  return work;
}

}  // namespace libtorch

// What `block` gives for these inputs, whatever and however many that are. `block` is a module's
// holder, a pointer to a module, a torch::nn::AnyModule, or anything that can be called; it is
// copied, and what it refers to has to stay until the backward pass.
//
// Gradients are those without, to the last bit. Random numbers of the processor, modes and autocast
// are those of the forward pass, and running means of a module's normalisations count once: so give
// the module where it has any, as they are not known of a function. A segment that changes its
// inputs or other tensors that it reads, reads memory that is not torch's (from_blob), draws from a
// generator of torch that is its own, computes on a GPU or runs a backward pass is never computed
// again. Where inputs, weights or other tensors have been changed in place or set anew since, or
// the segment does something else the second time, the backward pass ends with an error. What no
// operator does is not seen: writes through data_ptr or data(), random numbers that are not
// torch's. Inputs other than tensors are copied, lists of tensors stay where they are.
template <class Block, class... Inputs>
auto segment(Block block, Inputs... inputs) {
  static_assert(!std::is_base_of_v<torch::nn::Module, Block>,
                "give the module's holder, or a pointer to it: a copy of it would be kept");
  if (!libtorch::SegmentRun::counts()) return libtorch::run_block(block, inputs...);
  libtorch::SegmentRun run(libtorch::segment_work(block, inputs...));
  if constexpr (std::is_void_v<decltype(libtorch::run_block(block, inputs...))>) {
    libtorch::run_block(block, inputs...);
    run.end();
  } else {
    auto made = libtorch::run_block(block, inputs...);
    run.end();
    return made;
  }
}

}  // namespace tierpilot::swap
