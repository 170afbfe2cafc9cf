// Checkpoints of a job as clients are told them.
#include "coordinator/service/wire.h"

namespace tierpilot {

void write_checkpoints(const std::vector<ShownCheckpoint>& checkpoints, wire::Task::Builder out) {
  auto list = out.initCheckpoints(count(checkpoints));
  for (unsigned i = 0; i < list.size(); ++i) {
    const auto& from = checkpoints[i];
    auto to = list[i];
    to.setName(to_string(from.name));
    to.setAttempt(from.name.attempt);
    to.setIteration(from.name.iteration);
    to.setBytes(from.bytes);
    auto nodes = to.initNodes(count(from.nodes));
    for (unsigned k = 0; k < nodes.size(); ++k) nodes.set(k, from.nodes[k]);
    to.setNodesWanted(from.wanted);
    to.setSafe(from.is_safe());
    write_figure(from.stall_ms, to.initStallMs());
    write_figure(from.copy_ms, to.initCopyMs());
  }
}

void write_checkpointing(const CheckpointTotals& totals, wire::Checkpointing::Builder out) {
  const double mean_ns = static_cast<double>(totals.stall_ns) / static_cast<double>(totals.taken);
  out.setTaken(totals.taken);
  write_figure({mean_ns / 1e6, {}}, out.initStallMs());
  write_figure({totals.interval_s, {}}, out.initIntervalS());
  write_figure({totals.failures_per_h, {}}, out.initFailuresPerHour());
}

}  // namespace tierpilot
