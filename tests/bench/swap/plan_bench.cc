// How long planning takes, by the size of the graph: a chain of layers at half its peak.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "policies/swap/planner.h"
#include "tests/unit/swap/chain.h"

int main() {
  using namespace tierpilot::swap;
  std::printf("%-10s %-10s %-12s %s\n", "TENSORS", "OPERATORS", "LEAST ms", "OVERHEAD");
  for (const size_t layers : {500, 1250, 2500, 5000}) {
    const auto graph = chain(layers, 1);
    const Limits limits{.budget_bytes = baseline(graph).peak_bytes / 2};
    double least_ms = 1e9;
    Planned planned;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      planned = plan_step(graph, {.limits = limits, .work = kQuickWork});
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      least_ms = std::min(least_ms, took.count());
    }
    std::printf("%-10zu %-10zu %-12.1f %.3f\n", graph.tensors.size(), graph.operators.size(),
                least_ms, planned.outcome.done ? planned.outcome.overhead() : 0);
  }
}
