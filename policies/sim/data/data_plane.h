// How long it takes to bring tasks' data into the fast tiers of their nodes. Follows the daemon's
// pool (daemon/memory/pool) step by step:
//
//   serve() -> its pins fit, a mover is free (Admission) -> item by item: room (FastRoom), then
//   hit, promotion or fetch (Loads) -> DataClient::served ... finish() -> the settler commits what
//   was written (Commits) -> DataClient::settled
#pragma once

#include <cstdint>

#include "policies/sim/data/admission.h"
#include "policies/sim/data/commits.h"
#include "policies/sim/data/data_client.h"
#include "policies/sim/data/fast_room.h"
#include "policies/sim/data/loads.h"
#include "policies/sim/data/read_turns.h"
#include "policies/sim/data/replica_store.h"
#include "policies/sim/data/requests.h"
#include "policies/sim/data/transfers.h"

namespace tierpilot::sim {

class DataPlane {
 public:
  DataPlane(const ClusterSpec& cluster, const Workload& workload, ReplicaStore& store,
            EventQueue& events, DataClient& client);

  // A task, an index into the workload, has one request at a time. Versions are those of now.
  void ask(uint32_t task, uint32_t node);
  // The node has the request of ask() and works on it.
  void serve(int64_t now_ns, uint32_t task);
  // The served task has ended: commits what it wrote, and lets go of the rest.
  void finish(int64_t now_ns, uint32_t task);
  // Lets go of everything at once; nothing more is told of it. What others at the node can do now
  // begins with resume().
  void abandon(int64_t now_ns, uint32_t task);
  void resume(int64_t now_ns, uint32_t node);
  // What is read from the node must be read elsewhere; its own requests have been abandoned.
  void source_failed(int64_t now_ns, uint32_t node);
  // True: a flow has ended; false: it still has to wait.
  bool flow_event(const Event& event);

  // Ask for memory that a coming event will touch, step by step.
  void expect_task(uint32_t task) const { requests_.expect_task(task); }
  void expect_request(uint32_t task, uint32_t node) const;
  void expect_admission(uint32_t task) const;
  void expect_data(uint32_t task) const;
  void expect_flow(uint32_t flow, Soon soon) const;

 private:
  void expect_data_of(const DataRequest& request) const;
  void advance_ready();
  void advance(uint32_t id);
  void unserved(uint32_t id, bool stale);
  // Gives back pins, room and files.
  void let_go(DataRequest& request);
  void settle_next(uint32_t node);
  void settled(uint32_t id, bool committed);

  const Workload& workload_;
  ReplicaStore& store_;
  DataClient& client_;
  Requests requests_;
  Transfers transfers_;
  Admission admission_;
  ReadTurns turns_;
  FastRoom room_;
  Loads loads_;
  Commits commits_;
  int64_t now_ns_ = 0;
};

}  // namespace tierpilot::sim
