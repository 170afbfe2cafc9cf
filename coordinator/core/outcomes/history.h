// How long ended tasks are remembered. Their receipts go with them, and by those a repeated submit
// is known: a wall clock that jumps must not make that history old. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/history_clock.h"
#include "coordinator/core/cluster_state.h"
#include "coordinator/store/pruning.h"

namespace tierpilot {

class History {
 public:
  using After = std::function<void(int64_t us, std::function<void()>)>;
  // `after` calls back on the loop.
  History(ClusterState& state, After after) : state_(state), after_(std::move(after)) {}

  // After restore(). 0: nothing is forgotten.
  Status begin(int64_t keep_ms);
  // Several times a second.
  void tick();
  bool pruning() const { return pruning_; }

 private:
  struct Slice;
  void next_slice();
  void written(const Slice& slice, const Status& status);
  // Until the slice after this one.
  int64_t pause_us(const Slice& slice);

  ClusterState& state_;
  After after_;
  int64_t keep_ms_ = 0;
  std::unique_ptr<HistoryClock> clock_;
  int64_t next_round_ns_ = 0;
  uint64_t rounds_ = 0;
  bool pruning_ = false;
  records::PruneRound round_;
  uint64_t last_task_ = 0;    // that had arrived when the slice before was written
  uint64_t slice_tasks_ = 0;  // that the next slice may forget
};

}  // namespace tierpilot
