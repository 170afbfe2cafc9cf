#include "daemon/agent/node/node.h"

#include <malloc.h>
#include <sched.h>

#include <csignal>
#include <random>

#include "base/bytes.h"
#include "base/log.h"
#include "daemon/agent/calibration/recalibration.h"
#include "daemon/agent/data/data_server.h"
#include "daemon/agent/data/pool_plane.h"
#include "daemon/agent/data/remote_fetcher.h"
#include "daemon/agent/link/coordinator_link.h"
#include "daemon/agent/node/instances.h"
#include "daemon/agent/node/node_report.h"
#include "daemon/agent/node/node_service.h"
#include "daemon/agent/node/systemd.h"
#include "daemon/agent/paging/placement.h"
#include "daemon/agent/tasks/exec_runner.h"
#include "rpc/metrics_page.h"

namespace tierpilot::agent {
namespace {

constexpr int64_t kSweepMs = 600'000;
constexpr int64_t kLogBoundMs = 1'000;
constexpr int64_t kRecalibrationMs = 1'000;
constexpr int64_t kPollMs = 20;             // while stopping
constexpr int64_t kKillTimeoutMs = 12'000;  // the executor kills what is left within 10 s
constexpr int64_t kFlushTimeoutMs = 3'000;

uint64_t draw_instance() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

// The daemon stays on the CPUs that were given to it: what it measures is what its tasks will see.
Status stay_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    return fail_errno(errno, fmt::format("node.cpus {}", format_id_list(cpus)));
  return {};
}

std::string boot_id() {
  return Sysroot("/").read("/proc/sys/kernel/random/boot_id").value_or("");
}

std::optional<TlsFiles> tls_files(const NodeConfig::Tls& tls) {
  if (tls.ca.empty()) return std::nullopt;
  return TlsFiles{tls.ca, tls.certificate, tls.key};
}

}  // namespace

// In the order of making; they go in reverse.
struct Node::Parts {
  Parts(const NodeConfig& config, std::unique_ptr<Executor> executor, TaskDirs dirs)
      : config(config), executor(std::move(executor)), dirs(std::move(dirs)) {}
  ~Parts();

  Status measure();
  Status keep_measuring();
  Status open_pool();
  void make_lifecycle();
  std::vector<MetricValue> more_metrics() const;
  Status listen();
  Status serve_metrics();
  Status take_over();
  void make_link();
  void watch();
  void stop_on_signal();
  void stop_now();
  kj::Promise<void> wind_down();
  kj::Promise<void> wait_until(std::function<bool()> done, int64_t timeout_ms);
  kj::Promise<void> feed_watchdog(int64_t period_ms);
  kj::Promise<void> sweep_dirs(int64_t delay_ms);
  kj::Promise<void> bound_logs();
  kj::Promise<void> recalibrate();
  void deliver_exec_events();
  void log_probe_events();

  const NodeConfig config;
  const uint64_t instance = draw_instance();
  std::unique_ptr<Executor> executor;
  TaskDirs dirs;
  Topology topology;
  Calibration calibration;
  std::unique_ptr<Recalibration> recalibration;  // null: calibration is off in the configuration
  std::unique_ptr<PassiveProbe> probe;           // null: off in the configuration
  EventLoop loop;
  std::shared_ptr<RemoteFetcher> fetcher;
  std::unique_ptr<CoordinatorLink> link;
  EventStream events{[this] {
    if (link) link->wake();
  }};
  std::unique_ptr<Pool> pool;
  std::unique_ptr<PoolPlane> plane;
  const Sysroot sysroot{"/"};
  SystemPacer pacer;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<CpuShares> shares;
  JobChannels channels{loop, system_clock()};
  std::unique_ptr<Checkpoints> checkpoints;
  std::unique_ptr<ExecRunner> runner;
  std::unique_ptr<TaskTable> tasks;
  std::unique_ptr<StatusReporter> status;
  std::unique_ptr<DataServer> data_server;
  std::unique_ptr<MetricsPage> metrics;  // null: off in the configuration
  std::string data_address;
  Instances instances;
  int exit_code = 0;
  bool draining = false;
  bool stopping = false;
};

Node::Parts::~Parts() {
  // Its calls come back to the parts below it.
  link.reset();
  if (executor) loop.unwatch(executor->event_fd());
  if (probe && probe->event_fd() >= 0) loop.unwatch(probe->event_fd());
  if (recalibration) loop.unwatch(recalibration->probe_fd());
  if (recalibration && recalibration->uevent_fd() >= 0) loop.unwatch(recalibration->uevent_fd());
  // Workers of the pool may be waiting for another node.
  if (fetcher) fetcher->close();
}

Status Node::Parts::measure() {
  auto discovered = discover_topology(Sysroot("/"));
  if (!discovered) return tl::unexpected(discovered.error());
  topology = std::move(*discovered);
  for (const auto& warning : topology.warnings) spdlog::warn("topology: {}", warning);
  notify_status("Measuring memory tiers");
  auto measured = calibrate(config, topology);
  if (!measured) return tl::unexpected(measured.error());
  calibration = std::move(*measured);
  spdlog::info("tiers: {}", calibration.choice);
  return config.probe.calibrate ? keep_measuring() : Status{};
}

Status Node::Parts::keep_measuring() {
  auto server = ProbeServer::start();
  if (!server) return tl::unexpected(server.error());
  TopologyWatcher watcher({}, topology, system_clock());
  spdlog::info("memory that comes and goes: {}", watcher.source());
  recalibration = std::make_unique<Recalibration>(
      Recalibration::Options{.probe = probe_options(config.probe)}, std::move(*server),
      std::move(watcher), topology, calibration, system_clock());
  return {};
}

Status Node::Parts::open_pool() {
  if (config.probe.passive) {
    PassiveOptions wanted{.cpu_share = config.probe.passive_cpu_share};
    if (config.probe.fault_times) wanted.subjects.emplace_back("fault_time");
    probe = PassiveProbe::start(wanted);
    for (const auto& subject : probe->subjects())
      if (!subject.on) spdlog::info("passive probe: {}: {}", subject.subject, subject.reason);
  }
  fetcher = std::make_shared<RemoteFetcher>(loop, tls_files(config.tls));
  auto opened = Pool::open(
      pool_options(config.pool, calibration), fetcher,
      [this](std::function<void()> work) { loop.post(std::move(work)); },
      [this](const ReplicaChange& change) { events.add(change); });
  if (!opened) return tl::unexpected(opened.error());
  pool = std::move(*opened);
  return {};
}

void Node::Parts::make_lifecycle() {
  plane = std::make_unique<PoolPlane>(*pool, calibration);
  placement = std::make_unique<Placement>(
      config.placement,
      PlacementEnvironment{
          .sysroot = sysroot,
          .pacer = pacer,
          .kernel = system_page_kernel(),
          .make_trackers = [this] { return std::make_unique<TrackerChoice>(sysroot, pacer); }},
      placement_tiers(topology, calibration));
  shares = std::make_unique<CpuShares>(loop, *executor);
  channels.cpu_ns = [this](AttemptId attempt) { return shares->cpu_ns(attempt); };
  checkpoints = std::make_unique<Checkpoints>(
      *pool, channels, system_clock(), [this](EventBody body) { events.add(std::move(body)); });
  channels.checkpoint = [this](AttemptId attempt, const JobCheckpoint& asked) {
    checkpoints->save(attempt, asked);
  };
  runner = std::make_unique<ExecRunner>(
      ExecRunner::Options{config.name, config.cancel_grace_ms, config.work_dir / "tasks"},
      *executor, dirs, *placement, channels, *checkpoints, *shares, probe.get());
  tasks = std::make_unique<TaskTable>(TaskTable::Limits{.cpus = config.cpus,
                                                        .units = config.units,
                                                        .memory_bytes = config.memory_bytes,
                                                        .shared_units = config.shared_units},
                                      *plane, *runner, system_clock(),
                                      [this](EventBody body) { events.add(std::move(body)); });
  status = std::make_unique<StatusReporter>(
      *plane, *pool, *tasks, probe.get(), [this] { return more_metrics(); }, system_clock());
}

std::vector<MetricValue> Node::Parts::more_metrics() const {
  auto values = recalibration ? recalibration->metrics() : tier_metrics(calibration);
  for (auto& value : placement->metrics()) values.push_back(std::move(value));
  if (data_server)
    for (auto& value : turn_metrics(data_server->turns())) values.push_back(std::move(value));
  return values;
}

Status Node::Parts::listen() {
  auto address = Address::parse(config.data_listen);
  if (!address) return tl::unexpected(address.error());
  auto listening = DataServer::listen(loop, *address, tls_files(config.tls), *pool,
                                      static_cast<size_t>(config.pool.readers));
  if (!listening) return tl::unexpected(listening.error());
  data_server = std::move(*listening);
  data_address = config.data_advertise == config.data_listen ? data_server->address().to_string()
                                                             : config.data_advertise;
  fetcher->set_reader(data_address);
  return {};
}

Status Node::Parts::serve_metrics() {
  if (config.metrics_listen.empty()) return {};
  auto address = MetricsAddress::parse(config.metrics_listen);
  if (!address) return tl::unexpected(address.error());
  auto page = MetricsPage::listen(loop, *address, tls_files(config.tls),
                                  [this] { return status->page(calibration); });
  if (!page) return tl::unexpected(page.error());
  metrics = std::move(*page);
  spdlog::info("metrics at {}", metrics->address().to_string());
  return {};
}

// The executor holds the lock: what earlier daemons left can be told in their stead.
Status Node::Parts::take_over() {
  auto taken = Instances::take_over(config.work_dir, instance, boot_id());
  if (!taken) return tl::unexpected(taken.error());
  instances = std::move(*taken);
  auto ended = runner->kept_exits();
  if (!ended.empty())
    spdlog::info("{} tasks ended under an earlier daemon: their ends are reported", ended.size());
  tasks->restore(std::move(ended));
  return {};
}

void Node::Parts::make_link() {
  auto facts = std::make_shared<NodeFacts>(
      NodeFacts{config, topology, calibration, executor->limits(),
                probe ? probe->subjects() : std::vector<SubjectState>{}, *placement, instance,
                data_address, instances.predecessors()});
  CoordinatorLink::Parts parts{
      .loop = loop,
      .clock = system_clock(),
      .events = events,
      .tasks = *tasks,
      .node = kj::heap<NodeService>(*tasks, *pool, dirs, channels),
      .write_info = [facts](auto to) { write_info(to, *facts); },
      .write_status = [this](auto to) { status->write(to); },
      .job_reports =
          [this] {
            auto reports = channels.take_reports();
            // What is used of a part is measured also where the job says nothing.
            for (const auto attempt : tasks->running_parts())
              reports.push_back({attempt,
                                 system_clock().wall_ms(),
                                 {},
                                 shares->cpu_ns(attempt),
                                 0,
                                 shares->waited_ns(attempt)});
            for (auto& report : reports) report.milli_units = tasks->share(report.attempt);
            return reports;
          },
      .replicas = [this] { return pool->replicas(); },
      .extend_lease =
          [this](int64_t deadline_ns) {
            if (auto done = executor->extend_lease(deadline_ns); !done)
              spdlog::error("lease: {}", done.error().message);
          },
      .say = [](const std::string& text) { notify_status(text); },
      .registered =
          [this] {
            if (auto kept = instances.registered(); !kept) spdlog::warn("{}", kept.error().message);
          },
  };
  link = std::make_unique<CoordinatorLink>(std::move(parts), *Address::parse(config.coordinator),
                                           tls_files(config.tls), instance);
}

void Node::Parts::watch() {
  loop.on_signal({SIGTERM, SIGINT}, [this](int) { stop_on_signal(); });
  loop.watch_readable(executor->event_fd(), [this] { deliver_exec_events(); });
  if (probe && probe->event_fd() >= 0)
    loop.watch_readable(probe->event_fd(), [this] { log_probe_events(); });
  if (recalibration) {
    loop.watch_readable(recalibration->probe_fd(), [this] {
      if (!recalibration->on_probe()) loop.unwatch(recalibration->probe_fd());
    });
    if (recalibration->uevent_fd() >= 0)
      loop.watch_readable(recalibration->uevent_fd(), [this] { recalibration->on_uevent(); });
    loop.detach(recalibrate(), "measuring again");
  }
  if (const int64_t period_ms = watchdog_period_ms(); period_ms > 0)
    loop.detach(feed_watchdog(period_ms), "watchdog");
  loop.detach(sweep_dirs(kPollMs), "task directories");
  loop.detach(bound_logs(), "logs of running tasks");
}

void Node::Parts::deliver_exec_events() {
  runner->deliver(*tasks);
  if (executor->warden_alive() || stopping) return;
  spdlog::critical("the warden has died and every task with it");
  exit_code = 1;
  stop_now();
}

void Node::Parts::log_probe_events() {
  for (const auto& event : probe->drain_events())
    spdlog::debug("{}: {} pages, {} failed, {} ns, {} ({})",
                  event.kind == PassiveEvent::Kind::kMigration ? "migration" : "reclaim",
                  event.pages, event.pages_failed, event.duration_ns.value_or(0), event.detail,
                  event.command);
}

kj::Promise<void> Node::Parts::feed_watchdog(int64_t period_ms) {
  notify_watchdog();
  return loop.after_ms(period_ms).then([this, period_ms] { return feed_watchdog(period_ms); });
}

kj::Promise<void> Node::Parts::sweep_dirs(int64_t delay_ms) {
  return loop.after_ms(delay_ms).then([this] {
    if (const size_t removed = dirs.sweep(tasks->held(), system_clock().wall_ms()); removed > 0)
      spdlog::info("{} old task directories removed", removed);
    return sweep_dirs(kSweepMs);
  });
}

kj::Promise<void> Node::Parts::bound_logs() {
  return loop.after_ms(kLogBoundMs).then([this] {
    for (const auto attempt : tasks->held()) dirs.bound_logs(attempt, config.log_bytes);
    return bound_logs();
  });
}

kj::Promise<void> Node::Parts::recalibrate() {
  return loop.after_ms(kRecalibrationMs).then([this] {
    recalibration->tick();
    placement->set_tiers(placement_tiers(topology, calibration));
    return recalibrate();
  });
}

void Node::Parts::stop_on_signal() {
  if (draining || stopping || config.drain_s == 0) return stop_now();
  draining = true;
  tasks->drain("the node is stopping");
  if (tasks->idle()) return stop_now();
  spdlog::info("stopping: {} tasks run and have {} s to end", tasks->running_tasks(),
               config.drain_s);
  notify_draining(config.drain_s * 1000 + config.cancel_grace_ms + kKillTimeoutMs +
                  kFlushTimeoutMs);
  link->wake();
  loop.detach(
      wait_until([this] { return stopping || tasks->idle(); }, config.drain_s * 1000).then([this] {
        stop_now();
      }),
      "draining");
}

void Node::Parts::stop_now() {
  if (stopping) return;
  stopping = true;
  spdlog::info("stopping: {} attempts are cancelled", tasks->held().size());
  notify_stopping();
  tasks->close("the node is stopping");
  loop.detach(wind_down(), "stopping");
}

kj::Promise<void> Node::Parts::wind_down() {
  return wait_until([this] { return tasks->idle(); }, config.cancel_grace_ms + kKillTimeoutMs)
      .then([this] { return wait_until([this] { return events.empty(); }, kFlushTimeoutMs); })
      .then([this] { loop.stop(); });
}

kj::Promise<void> Node::Parts::wait_until(std::function<bool()> done, int64_t timeout_ms) {
  if (done() || timeout_ms <= 0) return kj::READY_NOW;
  return loop.after_ms(kPollMs).then([this, done = std::move(done), timeout_ms]() mutable {
    return wait_until(std::move(done), timeout_ms - kPollMs);
  });
}

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::start(const NodeConfig& config) {
  if (auto status = stay_on(config.cpus); !status) return tl::unexpected(status.error());
  auto dirs = TaskDirs::open(config.work_dir, {config.keep_logs_s, config.keep_logs_bytes});
  if (!dirs) return tl::unexpected(dirs.error());
  ExecutorOptions exec;
  exec.cgroup = config.cgroup;
  exec.task_root = config.work_dir / "tasks";
  auto executor = Executor::start(exec);
  if (!executor) return tl::unexpected(executor.error());
  // After the warden was forked: tasks keep the default.
  std::signal(SIGPIPE, SIG_IGN);

  auto parts = std::make_unique<Parts>(config, std::move(*executor), std::move(*dirs));
  if (auto status = parts->measure(); !status) return tl::unexpected(status.error());
  if (auto status = parts->open_pool(); !status) return tl::unexpected(status.error());
  parts->make_lifecycle();
  if (auto status = parts->listen(); !status) return tl::unexpected(status.error());
  if (auto status = parts->serve_metrics(); !status) return tl::unexpected(status.error());
  if (auto status = parts->take_over(); !status) return tl::unexpected(status.error());
  parts->make_link();
  parts->watch();
  // Start leaves more behind than running needs.
  ::malloc_trim(0);
  return std::unique_ptr<Node>(new Node(std::move(parts)));
}

int Node::run() {
  auto& parts = *parts_;
  spdlog::info("node {}: {} units on CPUs {}, fast {} and slow {}, serving data at {}",
               parts.config.name, parts.config.units, format_id_list(parts.config.cpus),
               format_bytes(parts.config.pool.fast_budget_bytes),
               format_bytes(parts.config.pool.slow_budget_bytes), parts.data_address);
  notify_ready(fmt::format("Serving; {}", parts.calibration.choice));
  parts.link->start();
  parts.loop.run();
  return parts.exit_code;
}

}  // namespace tierpilot::agent
