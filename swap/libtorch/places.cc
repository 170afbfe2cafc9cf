#include "swap/libtorch/places.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <string_view>

namespace tierpilot::swap::libtorch {
namespace {

// FNV-1a of 64 bits (Fowler, Noll, Vo).
constexpr uint64_t kBegin = 0xcbf29ce484222325, kPrime = 0x100000001b3;

uint64_t hashed(uint64_t hash, uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (value >> (8 * byte) & 0xff)) * kPrime;
  return hash;
}

uint64_t hash_of(std::string_view text) {
  auto hash = kBegin;
  for (const unsigned char letter : text) hash = (hash ^ letter) * kPrime;
  return hash;
}

}  // namespace

Position Places::of(const at::Tensor& tensor) {
  auto hash = kBegin;
  if (const auto maker = tensor.grad_fn()) {
    const auto& node = *maker;
    auto [found, fresh] = makers_.try_emplace(typeid(node), 0);
    if (fresh) found->second = hash_of(node.name());
    hash = found->second;
  }
  const auto kind = static_cast<uint32_t>(hash ^ hash >> 32);
  hash = hashed(hash, static_cast<uint64_t>(tensor.scalar_type()));
  for (const auto size : tensor.sizes()) hash = hashed(hash, static_cast<uint64_t>(size));
  return {.place = hash, .kind = kind};
}

}  // namespace tierpilot::swap::libtorch
