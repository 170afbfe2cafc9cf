// What this node is and how it does, as the coordinator is told.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/agent/calibration/calibration.h"
#include "daemon/agent/gpus/gpu_reading.h"
#include "daemon/agent/metrics/metrics.h"
#include "daemon/agent/paging/paging.h"
#include "daemon/agent/tasks/task_table.h"
#include "daemon/agent/tasks/task_users.h"
#include "daemon/agent/units/unit_health.h"
#include "daemon/config.h"
#include "daemon/exec/cgroup.h"
#include "daemon/memory/pool/pool.h"
#include "daemon/probe/passive/passive_probe.h"
#include "rpc/node.capnp.h"

namespace tierpilot::agent {

// Of these only topology, calibration and placement change while the daemon runs.
struct NodeFacts {
  const NodeConfig& config;
  const Topology& topology;
  const std::vector<SharedUnit>& shared_units;
  const Calibration& calibration;
  const LimitsReport& limits;
  std::vector<SubjectState> subjects;  // of the passive probe; empty: it is off
  const Paging& placement;
  const std::string& why_pauses_pass_unnoticed;  // see Executor
  uint64_t instance = 0;
  std::string data_address;
  std::vector<uint64_t> predecessors;  // instances that this one has taken over from
  const TaskUsers& users;
};

void write_info(wire::NodeInfo::Builder to, const NodeFacts& facts);

// Owned by the event loop's thread.
class StatusReporter {
 public:
  // `probe` may be null. `more` are metrics beside the collector's own.
  StatusReporter(const DataPlane& data, const Pool& pool, const TaskTable& tasks,
                 const UnitHealth& health, PassiveProbe* probe,
                 std::function<std::vector<MetricValue>()> more, const Clock& clock)
      : data_(data),
        pool_(pool),
        tasks_(tasks),
        health_(health),
        more_(std::move(more)),
        metrics_(pool, probe, clock) {}

  void set_gpus(std::vector<GpuReading> readings) { gpus_ = std::move(readings); }
  void write(wire::NodeStatus::Builder to);
  // The same and the tiers', for Prometheus.
  std::string page(const Calibration& calibration);

 private:
  std::vector<MetricValue> figures();

  const DataPlane& data_;
  const Pool& pool_;
  const TaskTable& tasks_;
  const UnitHealth& health_;
  std::function<std::vector<MetricValue>()> more_;
  MetricsCollector metrics_;
  std::vector<GpuReading> gpus_;
};

}  // namespace tierpilot::agent
