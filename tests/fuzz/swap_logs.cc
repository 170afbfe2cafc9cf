// Operator logs that users pass on.
#include "policies/swap/policies.h"
#include "policies/swap/readers.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

namespace {

// What replays and planners take for granted of a graph.
void holds_together(const swap::Graph& graph) {
  for (const auto& op : graph.operators) {
    fuzz::promise(op.time_ns >= 0, "no operator takes less than no time");
    for (const auto tensor : op.args)
      fuzz::promise(tensor < graph.tensors.size(), "arguments are tensors");
  }
  for (const auto& tensor : graph.tensors)
    fuzz::promise(tensor.storage < graph.storages.size(), "tensors have a storage");
  for (const auto& storage : graph.storages)
    fuzz::promise(storage.bytes >= 0, "no storage is smaller than nothing");
  const auto base = swap::baseline(graph);
  fuzz::promise(base.peak_bytes >= 0 && base.time_ns >= 0, "sums do not overflow");
}

}  // namespace

FUZZ(dtr_log) {
  if (const auto graph = swap::read_dtr_log(fuzz::file_of(bytes))) holds_together(*graph);
}

FUZZ(operator_table) {
  if (const auto graphs = swap::read_operator_table(fuzz::file_of(bytes)))
    for (const auto& graph : *graphs) holds_together(graph);
}

FUZZ(step) {
  if (const auto graph = swap::read_step(fuzz::file_of(bytes))) holds_together(*graph);
}

// What a log may do to the policies that it is replayed under.
FUZZ(replay) {
  constexpr size_t kMostOperators = 24;
  const auto graph = swap::read_dtr_log(fuzz::file_of(bytes));
  if (!graph || graph->operators.size() > kMostOperators) return;
  const auto peak_bytes = swap::baseline(*graph).peak_bytes;
  const swap::Limits limits{.budget_bytes = peak_bytes / 4 * 3,
                            .link = {.gb_per_s = 1, .latency_ns = 1000}};
  for (const auto& policy : swap::policy_infos()) {
    if (policy.name == "swap")
      continue;  // it takes seconds for whatever it gets; swap-quick plans, too
    const auto replayed = swap::replay(*graph, policy.name, {.limits = limits});
    if (!replayed) continue;
    const auto& outcome = replayed->outcome;
    fuzz::promise(outcome.clock_ns >= 0 && outcome.peak_bytes >= 0, "times and peaks do not wrap");
    fuzz::promise(!outcome.done || outcome.peak_bytes <= limits.budget_bytes,
                  "what got through stayed within its budget");
  }
}
