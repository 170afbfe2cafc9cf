// Keeps a running node's calibration true: follows memory that is plugged in and out, and measures
// again, seldom and on a quiet machine only.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "daemon/agent/calibration/calibration_update.h"
#include "daemon/probe/active/probe_server.h"
#include "daemon/probe/active/reprobe_schedule.h"
#include "daemon/topology/watcher.h"

namespace tierpilot::agent {

// Owned by one thread, which also reads the topology and the calibration that it changes. The owner
// calls tick() every second or so, and on_probe() and on_uevent() when their descriptors are
// readable.
class Recalibration {
 public:
  struct Options {
    ReprobeSchedule::Options schedule{};
    ProbeOptions probe{};
    ReprobeSchedule::LoadSource load = load_per_cpu;
  };

  // Both values outlive it.
  Recalibration(Options options, std::unique_ptr<ProbeServer> server, TopologyWatcher watcher,
                Topology& topology, Calibration& calibration, const Clock& clock);

  int probe_fd() const { return server_->fd(); }
  int uevent_fd() const { return watcher_.fd(); }  // -1: there is none
  void tick();
  // False: there will be no more; stop watching.
  bool on_probe();
  void on_uevent() { watcher_.on_readable(); }

  // The tiers' figures as they are now, how old they are, and what measuring again has cost.
  std::vector<MetricValue> metrics() const;

 private:
  void follow_topology();
  void ask();

  const Options options_;
  std::unique_ptr<ProbeServer> server_;
  TopologyWatcher watcher_;
  Topology& topology_;
  Calibration& calibration_;
  const Clock& clock_;
  ReprobeSchedule schedule_;
  int64_t measured_ns_;
  bool server_ended_ = false;
  uint64_t times_ = 0;
  double cpu_s_ = 0;
};

}  // namespace tierpilot::agent
