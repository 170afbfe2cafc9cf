// Layers that read earlier ones, whichever, forward and backward: what is away is needed all over
// the step.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {

inline Graph skipping(size_t layers, size_t skips, uint64_t seed) {
  SeededRandom random(seed);
  GraphBuilder builder;
  const auto must = [](const Status& status) {
    if (!status) throw std::runtime_error(status.error().message);
  };
  const auto call = [&](const std::vector<std::string>& args, const std::string& out,
                        double least_ns) {
    const NewTensor results[] = {{out, static_cast<int64_t>(random.log_uniform(1e5, 4e6))}};
    must(builder.call("f", args, results,
                      static_cast<int64_t>(random.log_uniform(least_ns, 10 * least_ns))));
  };
  must(builder.constant("a0", 1'000'000));
  std::vector<std::vector<std::string>> reads;
  for (size_t at = 0; at < layers; ++at) {
    std::vector<std::string> args{fmt::format("a{}", at)};
    for (size_t skip = 0; skip < skips; ++skip) {
      const auto earlier = fmt::format("a{}", random.below(at + 1));
      if (std::ranges::find(args, earlier) == args.end()) args.push_back(earlier);
    }
    call(args, fmt::format("a{}", at + 1), 1e4);
    reads.push_back(std::move(args));
  }
  builder.backward();
  auto gradient = fmt::format("a{}", layers);
  for (size_t at = layers; at-- > 0;) {
    auto args = reads[at];
    args.push_back(gradient);
    if (at + 1 < layers) args.push_back(fmt::format("a{}", at + 1));
    const auto out = fmt::format("g{}", at);
    call(args, out, 2e4);
    must(builder.release(gradient));
    if (at + 1 < layers) must(builder.release(fmt::format("a{}", at + 1)));
    gradient = out;
  }
  return builder.take("skipping");
}

}  // namespace tierpilot::swap
