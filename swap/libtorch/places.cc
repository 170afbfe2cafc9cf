#include "swap/libtorch/places.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace tierpilot::swap::libtorch {

Position Places::of(const at::Tensor& tensor) {
  Hash hash;
  if (const auto maker = tensor.grad_fn()) {
    const auto& node = *maker;
    auto [found, fresh] = makers_.try_emplace(typeid(node));
    if (fresh) found->second.add(node.name());
    hash = found->second;
  }
  const auto kind = static_cast<uint32_t>(hash.value() ^ hash.value() >> 32);
  hash.add(static_cast<uint64_t>(tensor.scalar_type()));
  for (const auto size : tensor.sizes()) hash.add(static_cast<uint64_t>(size));
  return {.place = hash.value(), .kind = kind};
}

}  // namespace tierpilot::swap::libtorch
