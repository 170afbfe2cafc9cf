// Tasks that wait for a share of a unit.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "policies/sharing/live/live_unit.h"

namespace tierpilot {

// Those with promises whose time is not over first, then other latency-sensitive ones, each in the
// order that they came.
std::vector<uint64_t> waiting_for_shares(const ClusterState& state);

// Its promise is not decided.
inline bool is_on_trial(const Task& task) {
  return task.spec.share.promise_on_trial &&
         (!task.share || task.share->trial_end == TrialEnd::kNone);
}

// Its time was, or is now, over before it could begin, which decides its promise.
bool waited_too_long(const Task& task, int64_t now_ms);

// Until the time by which it was promised to end, now or at its end; sharing::kNoPromise where
// nothing was.
double promise_left_s(const ClusterState& state, const Task& task);

// Its time is not over. Those that are on trial have one as well.
bool has_promise_to_keep(const ClusterState& state, const Task& task);

// For units of which somebody waits whose promise was made.
std::set<Engine> engines_with_promises(const ClusterState& state);

// What it waits for where there is no unit that will do.
std::string missing_units(const ClusterState& state, const TaskSpec& spec);
// Each unit that would do is closed, see ShareKeeper::close_unsound().
bool all_are_closed(const std::vector<sharing::LiveNode>& nodes, const sharing::WaitingJob& job);
// The same where no unit has as much memory; empty: one has.
std::string too_little_memory(const std::vector<sharing::LiveNode>& nodes,
                              const sharing::WaitingJob& job);

// The same where no unit has as much of its compute and memory free; empty: one has.
std::string too_little_free(const std::vector<sharing::LiveNode>& nodes,
                            const sharing::WaitingJob& job);

inline double boot_s(const ClusterState& state) {
  return static_cast<double>(state.clock.boot_ns()) / 1e9;
}

}  // namespace tierpilot
