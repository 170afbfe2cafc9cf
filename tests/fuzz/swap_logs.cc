// Operator logs that users pass on.
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
