// Steps that are run again where memory ran out.
#include <ATen/CPUGeneratorImpl.h>

#include <new>
#include <string_view>

#include "swap/libtorch/tensor_pool.h"
#include "swap/libtorch/tierpilot_swap_torch.h"

namespace tierpilot::swap {

// Of the processor's random numbers.
class libtorch::RandomState {
 public:
  RandomState() : state_(locked([](at::Generator& all) { return all.get_state(); })) {}
  void restore() {
    locked([this](at::Generator& all) { return all.set_state(state_), state_; });
  }

 private:
  template <class Work>
  static at::Tensor locked(const Work& work) {
    auto all = at::detail::getDefaultCPUGenerator();
    const std::lock_guard lock(all.mutex());
    return work(all);
  }
  at::Tensor state_;
};

std::shared_ptr<libtorch::RandomState> Scope::random_state() {
  return std::make_shared<libtorch::RandomState>();
}

bool Scope::ran_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) ||
         std::string_view(error.what()).find("allocate memory") != std::string_view::npos;
}

void Scope::begin_again(libtorch::RandomState& random) {
  pool_->failed();
  TORCH_WARN("tierpilot::swap: no memory: the step runs again, with everything away");
  random.restore();
}

}  // namespace tierpilot::swap
