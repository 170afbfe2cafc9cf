// A chain of layers, forward and backward, of seeded sizes and times: enough to tell planners
// apart.
#pragma once

#include <stdexcept>

#include "base/random.h"
#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {

inline Graph chain(size_t layers, uint64_t seed) {
  SeededRandom random(seed);
  GraphBuilder builder;
  const auto must = [](const Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
  };
  const auto size = [&] { return static_cast<int64_t>(random.log_uniform(1e5, 4e6)); };
  must(builder.constant("a0", 1'000'000));
  for (size_t at = 0; at < layers; ++at) {
    const auto in = "a" + std::to_string(at), out = "a" + std::to_string(at + 1);
    const std::string args[] = {in};
    const NewTensor results[] = {{out, size()}};
    must(builder.call("f", args, results, static_cast<int64_t>(random.log_uniform(1e3, 1e5))));
  }
  builder.backward();
  std::string gradient = "a" + std::to_string(layers);
  for (size_t at = layers; at-- > 0;) {
    const auto kept = "a" + std::to_string(at), out = "g" + std::to_string(at);
    const std::string args[] = {gradient, kept};
    const NewTensor results[] = {{out, size()}};
    must(builder.call("b", args, results, static_cast<int64_t>(random.log_uniform(2e3, 2e5))));
    must(builder.release(gradient));
    if (at > 0) must(builder.release(kept));
    gradient = out;
  }
  return builder.take("chain");
}

}  // namespace tierpilot::swap
