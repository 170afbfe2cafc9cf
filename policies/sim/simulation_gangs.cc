// Gangs: what becomes of one becomes of all ranks.
#include <algorithm>
#include <cmath>

#include "policies/sim/simulation.h"

namespace tierpilot::sim {

void Simulation::rank_reported(uint32_t task, Verdict verdict) {
  const Gang& gang = *gangs_.of(task);
  if (verdict != Verdict::kSucceeded) {
    table_[task].phase = TaskPhase::kLost;
    cut_off_gang(gang, kNone);
    return queue_again(gang.first, verdict == Verdict::kTryAgain);
  }
  table_[task].phase = TaskPhase::kOver;
  table_.renew(task);
  if (!gangs_.over(task)) return;
  succeed(gang.first);
  for (uint32_t rank = 1; rank < gang.ranks; ++rank) table_.end(gang.first + rank);
}

// `failed_node`: whose tasks are cut off by the caller, all of them; kNone: none is.
void Simulation::cut_off_gang(const Gang& gang, uint32_t failed_node) {
  double kept_operations = HUGE_VAL;  // by the checkpoint of all: the slowest has done least
  for (uint32_t rank = 0; rank < gang.ranks; ++rank) {
    const uint32_t task = gang.first + rank;
    AttemptState& state = table_[task];
    const TaskPhase phase = state.phase;
    if (phase < TaskPhase::kAssigned || phase > TaskPhase::kReported) {
      state.phase = TaskPhase::kLost;
      continue;
    }
    attempts_.cut_off(now_ns_, task);
    if (phase == TaskPhase::kRunning)
      kept_operations = std::min(kept_operations, state.done_operations);
    dispatcher_.released(task, state.node);
    state.phase = TaskPhase::kLost;
    table_.renew(task);
    if (state.node != failed_node) attempts_.resume(now_ns_, state.node);
  }
  if (kept_operations == HUGE_VAL) return;
  for (uint32_t rank = 0; rank < gang.ranks; ++rank)
    table_[gang.first + rank].done_operations = kept_operations;
}

}  // namespace tierpilot::sim
