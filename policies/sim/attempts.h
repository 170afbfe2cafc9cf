// The attempts of tasks at their nodes, from the decision until the coordinator knows of the end:
// data is brought in (DataPlane), the task waits for units and runs (Engines), what it wrote is
// committed.
#pragma once

#include <cstdint>

#include "policies/sim/attempt_table.h"
#include "policies/sim/data/data_client.h"
#include "policies/sim/data/data_plane.h"
#include "policies/sim/engines.h"
#include "policies/sim/events/event_queue.h"
#include "policies/sim/gangs.h"
#include "policies/sim/outcomes.h"
#include "policies/sim/queue/queue_places.h"
#include "policies/sim/view/cluster_view.h"

namespace tierpilot::sim {

class Attempts final : private DataClient {
 public:
  Attempts(const ClusterSpec& cluster, const Workload& workload, const QueuePlaces& places,
           AttemptTable& table, Gangs& gangs, ReplicaStore& store, ClusterView& view,
           Engines& engines, EventQueue& events, Outcomes& outcomes);

  DataPlane& data() { return data_; }
  const DataPlane& data() const { return data_; }

  // The task is the node's. `missing_bytes` of its data are not in the node's fast tier.
  void begin(int64_t now_ns, uint32_t task, uint32_t node, uint64_t missing_bytes);
  // The node has it.
  void received(int64_t now_ns, uint32_t task);
  void run_ended(int64_t now_ns, uint32_t task);
  // Of an event kCores: how many runs it has ended.
  uint64_t runs_ended(const Event& event);
  // The coordinator knows of the end.
  Verdict close(uint32_t task);
  // Takes the attempt from its node, wherever it is.
  void cut_off(int64_t now_ns, uint32_t task);
  // Begins what has become possible at a node where attempts were cut off.
  void resume(int64_t now_ns, uint32_t node);

 private:
  void served(int64_t now_ns, uint32_t task, const Service& service) override;
  void unserved(int64_t now_ns, uint32_t task, bool stale) override;
  void settled(int64_t now_ns, uint32_t task, bool committed) override;
  double transfer(int64_t now_ns, uint32_t node, bool begins) override;
  void room_changed(uint32_t node) override { view_.room_changed(node); }

  void launch_ready(int64_t now_ns, uint32_t node);
  void launch(int64_t now_ns, uint32_t task);
  // All ranks have their units.
  void run_gang(int64_t now_ns, const Gang& gang);
  // Of what is left of it, on its node.
  double run_s_of(uint32_t task) const;
  void run(int64_t now_ns, uint32_t task, double seconds);
  void report(int64_t now_ns, uint32_t task, Verdict verdict);
  // An event of the task when the coordinator or its node has been told.
  void after_handling(int64_t now_ns, EventQueue::Lane lane, double seconds, EventKind kind,
                      uint32_t task);
  void release(uint32_t task);

  const ClusterSpec& cluster_;
  const Workload& workload_;
  const QueuePlaces& places_;
  AttemptTable& table_;
  Gangs& gangs_;
  ClusterView& view_;
  Engines& engines_;
  EventQueue& events_;
  Outcomes& outcomes_;
  DataPlane data_;
  uint32_t arrivals_ = 0;  // at nodes
};

}  // namespace tierpilot::sim
