// Traces, records of failures and lists of nodes that users pass on.
#include "policies/gang/rates/history_reader.h"
#include "policies/sim/trace/readers.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

namespace {

const sim::TraceOptions kOptions{.max_tasks = 100'000, .max_units = 64, .max_gpus = 8};

void holds_together(const Result<sim::Trace>& trace) {
  if (!trace) return;
  const auto& workload = trace->workload;
  fuzz::promise(trace->summary.tasks == workload.tasks.size(), "tasks are counted");
  int64_t last_ns = 0;
  for (const auto& task : workload.tasks) {
    fuzz::promise(task.arrival_ns >= last_ns, "tasks come one after the other");
    last_ns = task.arrival_ns;
    fuzz::promise(task.operations > 0 && task.operations < 1e300 && task.units > 0,
                  "tasks have work");
    fuzz::promise(task.user < workload.users.size(), "tasks are somebody's");
    fuzz::promise(size_t{task.first_use} + task.use_count <= workload.uses.size(),
                  "uses are those of tasks");
  }
  for (const auto& use : workload.uses)
    fuzz::promise(use.dataset < workload.datasets.size(), "what is used is there");
}

}  // namespace

FUZZ(trace_history) {
  holds_together(sim::read_history(fuzz::file_of(bytes), kOptions));
}

FUZZ(trace_philly) {
  holds_together(sim::read_philly(fuzz::file_of(bytes), kOptions));
}

FUZZ(trace_swf) {
  holds_together(sim::read_swf(fuzz::file_of(bytes), kOptions));
}

// One file is both lists: columns may have any order.
FUZZ(trace_openb) {
  const auto file = fuzz::file_of(bytes);
  if (auto trace = sim::read_openb(file, file, kOptions)) holds_together(std::move(trace->trace));
}

FUZZ(failure_history) {
  const auto file = fuzz::file_of(bytes);
  for (const auto& installed : {std::string(), file})
    if (const auto history = gang::read_failure_history({.failures = file, .installed = installed}))
      for (const auto& failure : history->failures)
        fuzz::promise(failure.unit < history->units.size() &&
                          failure.kind < history->kinds.size() &&
                          failure.day >= history->begin_day && failure.day <= history->end_day,
                      "failures are of units, within the record");
}
