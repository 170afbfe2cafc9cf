// A step whose plans can be reckoned by hand.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policies/swap/graph_builder.h"

namespace tierpilot::swap {

// w -> a (10 ns) -> b (20 ns) -> c (30 ns), then c, b and a are read in that order. All are of 100
// bytes, and so is what the readers make. `b` can only be made from `a`.
inline Graph ladder() {
  GraphBuilder builder;
  const auto call = [&](const char* name, std::vector<std::string> args, const char* result,
                        int64_t ns) {
    const NewTensor results[] = {{result, 100}};
    EXPECT_TRUE(builder.call(name, args, results, ns));
  };
  EXPECT_TRUE(builder.constant("w", 100));
  call("f", {"w"}, "a", 10);
  call("f", {"a"}, "b", 20);
  call("f", {"b"}, "c", 30);
  builder.backward();
  call("g", {"c"}, "x", 40);
  EXPECT_TRUE(builder.release("c"));
  call("g", {"x", "b"}, "y", 50);
  for (const auto* name : {"x", "b"}) EXPECT_TRUE(builder.release(name));
  call("g", {"y", "a"}, "z", 60);
  for (const auto* name : {"y", "a"}) EXPECT_TRUE(builder.release(name));
  return builder.take("ladder");
}

}  // namespace tierpilot::swap
