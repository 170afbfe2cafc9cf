// What a node's daemon is made of, and how its parts are made, kept going and ended. Event loop
// thread only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/history_clock.h"
#include "daemon/agent/calibration/recalibration.h"
#include "daemon/agent/data/data_server.h"
#include "daemon/agent/data/pool_plane.h"
#include "daemon/agent/data/remote_fetcher.h"
#include "daemon/agent/gpus/gpu_reader.h"
#include "daemon/agent/gpus/gpu_shares.h"
#include "daemon/agent/job_channel/fresh_checkpoints.h"
#include "daemon/agent/link/coordinator_link.h"
#include "daemon/agent/node/instances.h"
#include "daemon/agent/node/node.h"
#include "daemon/agent/node/node_report.h"
#include "daemon/agent/paging/paging.h"
#include "daemon/agent/tasks/exec_runner.h"
#include "daemon/agent/units/gpu_watch.h"
#include "daemon/agent/units/health_checks.h"
#include "daemon/agent/units/unit_health.h"
#include "rpc/metrics_page.h"

namespace tierpilot::agent {

// In the order of making; they go in reverse.
struct Node::Parts {
  Parts(const NodeConfig& config, std::unique_ptr<Executor> executor, TaskDirs dirs);
  ~Parts();

  Status measure();
  Status keep_measuring();
  Status open_pool();
  Status open_tls();
  Status make_lifecycle();
  std::vector<MetricValue> more_metrics() const;
  Status listen();
  Status serve_metrics();
  Status take_over();
  void make_link();
  Status share_gpus();
  void poll_gpus();
  void end_gpu_polls();
  void watch_gpus();
  void read_gpus();
  void check_units();
  std::vector<JobReport> job_reports();
  void watch();
  void stop_on_signal();
  void stop_now();
  void begin_anew_with_gpus();
  kj::Promise<void> wind_down();
  kj::Promise<void> sweep_dirs(int64_t delay_ms);
  kj::Promise<void> bound_logs();
  kj::Promise<void> recalibrate();
  void deliver_exec_events();

  const NodeConfig config;
  const uint64_t instance;
  std::unique_ptr<Executor> executor;
  TaskDirs dirs;
  HistoryClock dirs_clock;  // a wall clock that jumps does not take everybody's logs
  Topology topology;
  Calibration calibration;
  std::unique_ptr<Recalibration> recalibration;  // null: calibration is off in the configuration
  std::unique_ptr<PassiveProbe> probe;           // null: off in the configuration
  EventLoop loop;
  Tls tls;  // null: not configured
  std::shared_ptr<RemoteFetcher> fetcher;
  std::unique_ptr<CoordinatorLink> link;
  EventStream events{[this] {
    if (link) link->wake();
  }};
  std::unique_ptr<Pool> pool;
  std::unique_ptr<FreshCheckpoints> fresh_checkpoints;
  std::unique_ptr<PoolPlane> plane;
  const Sysroot sysroot{"/"};
  SystemPacer pacer;
  std::unique_ptr<Paging> placement;
  std::unique_ptr<CpuShares> shares;
  std::vector<SharedUnit> shared_units;  // of cores, then GPUs
  std::unique_ptr<GpuShares> gpu_shares;
  TaskUsers users{config.task_users,
                  [this](std::function<void()> work) { loop.post(std::move(work)); }};
  JobChannels channels{loop, system_clock()};
  std::unique_ptr<SwapRoom> swap_room;
  std::unique_ptr<Checkpoints> checkpoints;
  std::unique_ptr<ExecRunner> runner;
  std::unique_ptr<TaskTable> tasks;
  UnitHealth health{[this] {
    if (link) link->wake();
  }};
  std::map<std::string, std::unique_ptr<GpuPoll>> gpu_polls;  // of those that are shared, by UUID
  std::unique_ptr<GpuWatch> gpu_watch;                        // null: there is no GPU
  std::unique_ptr<HealthChecks> health_checks;                // null: no command is configured
  std::unique_ptr<StatusReporter> status;
  std::unique_ptr<GpuReader> gpu_reader;  // null: there is no GPU
  std::unique_ptr<DataServer> data_server;
  std::unique_ptr<MetricsPage> metrics;  // null: off in the configuration
  std::string data_address;
  Instances instances;
  // Told from a thread that outlives this, as it may wait for a driver for good.
  struct LateGpus {
    std::mutex mutex;
    std::function<void()> came;
  };
  std::shared_ptr<LateGpus> late_gpus = std::make_shared<LateGpus>();
  int exit_code = 0;
  bool draining = false;
  bool stopping = false;
};

}  // namespace tierpilot::agent
