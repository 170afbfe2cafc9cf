// A chain of layers, forward and backward, of seeded sizes and times: enough to tell planners
// apart.
#pragma once

#include <stdexcept>

#include "base/random.h"
#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {

// With `viewed`, what the backward pass reads are views, which take time too.
inline Graph chain(size_t layers, uint64_t seed, bool viewed = false) {
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
    if (!viewed) continue;
    const std::string whole[] = {out};
    const NewTensor views[] = {{.name = "v" + std::to_string(at + 1), .alias = 0}};
    must(builder.call("view", whole, views, static_cast<int64_t>(random.log_uniform(1e3, 1e4))));
  }
  builder.backward();
  std::string gradient = "a" + std::to_string(layers);
  for (size_t at = layers; at-- > 0;) {
    const auto kept = "a" + std::to_string(at), out = "g" + std::to_string(at);
    const auto view = "v" + std::to_string(at);
    const std::string args[] = {gradient, viewed && at > 0 ? view : kept};
    const NewTensor results[] = {{out, size()}};
    must(builder.call("b", args, results, static_cast<int64_t>(random.log_uniform(2e3, 2e5))));
    must(builder.release(gradient));
    if (at > 0) must(builder.release(kept));
    must(builder.release(view));
    gradient = out;
  }
  return builder.take("chain");
}

}  // namespace tierpilot::swap
