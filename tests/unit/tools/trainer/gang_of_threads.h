// Ranks of one training as threads of the test.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "tests/support/free_port.h"
#include "tools/trainer/group.h"

namespace tierpilot::trainer {

// Runs `rank` for each of them once they have met; alone nobody is met. What it gives is in the
// order of the ranks.
template <class Value>
std::vector<Value> as_gang(uint32_t world, const std::function<Value(Group&)>& rank) {
  const auto port = test::free_port();
  std::vector<Value> values(world);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < world; ++i)
    threads.emplace_back([&, i] {
      auto group = Group::meet({.rank = i,
                                .world = world,
                                .master_host = "127.0.0.1",
                                .master_port = port,
                                .network_interface = ""},
                               std::chrono::seconds(60));
      if (!group) throw std::runtime_error(group.error().message);
      values[i] = rank(*group);
    });
  for (auto& thread : threads) thread.join();
  return values;
}

}  // namespace tierpilot::trainer
