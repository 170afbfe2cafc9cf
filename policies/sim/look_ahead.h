// What events that are soon to come will touch is brought into the caches: first what the event
// names, then what that names, and so on. Changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policies/sim/attempt_table.h"
#include "policies/sim/data/data_plane.h"
#include "policies/sim/engines.h"
#include "policies/sim/events/event_queue.h"
#include "policies/sim/queue/dataset_writers.h"
#include "policies/sim/view/node_states.h"

namespace tierpilot::sim {

// What the events touch. Must outlive the LookAhead.
struct LookedAt {
  const Workload& workload;
  const EventQueue& events;
  const AttemptTable& table;
  const DataPlane& data;
  const Engines& engines;
  const NodeStates& nodes;
  const ReplicaStore& store;
  const DatasetWriters& writers;
};

class LookAhead {
 public:
  explicit LookAhead(const LookedAt& at) : at_(at) {}
  // Those that come after the one that was just taken.
  void events(const Event& taken) const;
  // `next`: the task that arrives now.
  void arrivals(size_t next) const;

 private:
  void expect(const Event& event, Soon soon) const;
  void received(uint32_t task, Soon soon) const;
  void run_end(uint32_t task, Soon soon) const;
  void report(uint32_t task, Soon soon) const;

  const LookedAt at_;
};

}  // namespace tierpilot::sim
