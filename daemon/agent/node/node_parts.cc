#include "daemon/agent/node/node_parts.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "base/log.h"
#include "daemon/agent/calibration/swap_order.h"
#include "daemon/agent/node/node_service.h"
#include "daemon/agent/node/systemd.h"
#include "rpc/tls/tls_refresh.h"

namespace tierpilot::agent {
namespace {

std::string boot_id() {
  return Sysroot("/").read("/proc/sys/kernel/random/boot_id").value_or("");
}
Result<Tls> load_tls(const NodeConfig::Tls& tls) {
  if (tls.ca.empty()) return Tls();
  return TlsIdentity::load({tls.ca, tls.certificate, tls.key, tls.crl});
}

uint64_t draw_instance() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

// Logs do not grow old while no daemon runs: a clock that jumped meanwhile would take them all.
int64_t age_from(const TaskDirs& dirs) {
  const int64_t now_ms = system_clock().wall_ms(), newest_ms = dirs.newest_ms();
  return newest_ms > 0 ? std::min(newest_ms, now_ms) : now_ms;
}

}  // namespace

Node::Parts::Parts(const NodeConfig& config, std::unique_ptr<Executor> executor, TaskDirs dirs)
    : config(config),
      instance(draw_instance()),
      executor(std::move(executor)),
      dirs(std::move(dirs)),
      dirs_clock(system_clock(), age_from(this->dirs)) {
  late_gpus->came = [this] { loop.post([this] { begin_anew_with_gpus(); }); };
}

Node::Parts::~Parts() {
  {
    const std::lock_guard lock(late_gpus->mutex);
    late_gpus->came = nullptr;
  }
  channels.checkpoint = [](AttemptId, const JobCheckpoint&) {};  // who takes them ends before
  health_checks.reset();
  // Of a driver that hangs all are waited for at the same time.
  if (gpu_reader) gpu_reader->stop();
  if (gpu_watch) gpu_watch->stop();
  for (auto& [uuid, poll] : gpu_polls) poll->stop();
  gpu_reader.reset();
  gpu_watch.reset();
  end_gpu_polls();
  // Its calls come back to the parts below it.
  link.reset();
  if (executor) loop.unwatch(executor->event_fd());
  if (probe && probe->event_fd() >= 0) loop.unwatch(probe->event_fd());
  if (recalibration) loop.unwatch(recalibration->probe_fd());
  if (recalibration && recalibration->uevent_fd() >= 0) loop.unwatch(recalibration->uevent_fd());
  // Workers of the pool may be waiting for another node.
  if (fetcher) fetcher->close();
}

// Before anything else is forked: what is, would have the key's descriptor.
Status Node::Parts::open_tls() {
  auto identity = load_tls(config.tls);
  if (!identity) return tl::unexpected(identity.error());
  tls = std::move(*identity);
  keep_fresh(loop, tls);
  // The key is in this memory. Where tasks are the same user nobody else keeps them out of it.
  if (tls && ::prctl(PR_SET_DUMPABLE, 0) != 0) return fail_errno(errno, "PR_SET_DUMPABLE");
  return {};
}

Status Node::Parts::measure() {
  DiscoverOptions options;
  options.gpus_came_late = [late = late_gpus] {
    const std::lock_guard lock(late->mutex);
    if (late->came) late->came();
  };
  auto discovered = discover_topology(Sysroot("/"), options);
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

  fetcher = std::make_shared<RemoteFetcher>(loop, tls);
  auto opened = Pool::open(
      pool_options(config.pool, calibration), fetcher,
      [this](std::function<void()> work) { loop.post(std::move(work)); },
      [this](const ReplicaChange& change) {
        events.add(change);
        if (fresh_checkpoints) fresh_checkpoints->changed(change);
      });
  if (!opened) return tl::unexpected(opened.error());
  pool = std::move(*opened);
  fresh_checkpoints = std::make_unique<FreshCheckpoints>(*pool);
  return {};
}

Status Node::Parts::make_lifecycle() {
  plane = std::make_unique<PoolPlane>(*pool, calibration);
  placement = std::make_unique<Paging>(
      config.placement,
      PagingEnvironment{
          .sysroot = sysroot,
          .pacer = pacer,
          .kernel = system_page_kernel(),
          .make_trackers = [this] { return std::make_unique<TrackerChoice>(sysroot, pacer); }},
      paging_tiers(topology, calibration));
  shares = std::make_unique<CpuShares>(loop, *executor);
  channels.cpu_ns = [this](AttemptId attempt) { return shares->cpu_ns(attempt); };
  if (auto shared = share_gpus(); !shared) return shared;
  checkpoints = std::make_unique<Checkpoints>(
      *pool, channels, system_clock(),
      [this](AttemptId attempt, const std::string& path, Checkpoints::Opened opened) {
        executor->open_file(attempt.task, attempt.attempt, path, std::move(opened));
      },
      [this](EventBody body) { events.add(std::move(body)); });
  channels.checkpoint = [this](AttemptId attempt, const JobCheckpoint& asked) {
    checkpoints->save(attempt, asked);
  };
  for (const uid_t uid : executor->uncleared_users()) users.retire(uid);
  swap_room =
      std::make_unique<SwapRoom>(fast_to_slow(config.swap_tiers, calibration.tiers), config.name);
  runner = std::make_unique<ExecRunner>(
      ExecRunner::Options{config.name, config.cancel_grace_ms, config.work_dir / "tasks"},
      *executor, dirs, users, *placement, channels, *checkpoints, *shares, *gpu_shares, *swap_room,
      probe.get());
  tasks = std::make_unique<TaskTable>(NodeLimits{.cpus = config.cpus,
                                                 .units = config.units,
                                                 .memory_bytes = config.memory_bytes,
                                                 .swap_room_bytes = swap_room->offered_bytes(),
                                                 .shared_units = shared_units},
                                      *plane, *runner, system_clock(),
                                      [this](EventBody body) { events.add(std::move(body)); });
  runner->failed = [this](AttemptId attempt, ExitReport exit) {
    tasks->exited(attempt, std::move(exit));
  };
  status = std::make_unique<StatusReporter>(
      *plane, *pool, *tasks, health, probe.get(), [this] { return more_metrics(); },
      system_clock());
  return {};
}

std::vector<MetricValue> Node::Parts::more_metrics() const {
  auto values = recalibration ? recalibration->metrics() : tier_metrics(calibration);
  for (auto& value : placement->metrics()) values.push_back(std::move(value));
  for (auto& value : gpu_shares->metrics()) values.push_back(std::move(value));
  for (auto& value : swap_room->metrics()) values.push_back(std::move(value));
  if (data_server)
    for (auto& value : turn_metrics(data_server->turns())) values.push_back(std::move(value));
  return values;
}

Status Node::Parts::listen() {
  auto address = Address::parse(config.data_listen);
  if (!address) return tl::unexpected(address.error());
  auto listening =
      DataServer::listen(loop, *address, tls, *pool, static_cast<size_t>(config.pool.readers));
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
  auto page =
      MetricsPage::listen(loop, *address, tls, [this] { return status->page(calibration); });
  if (!page) return tl::unexpected(page.error());
  metrics = std::move(*page);
  spdlog::info("metrics at {}", metrics->address().to_string());
  return {};
}

// The executor holds the lock: what earlier daemons left can be told in their stead.
Status Node::Parts::take_over() {
  instances = Instances::take_over(config.work_dir, instance, boot_id());
  auto ended = runner->kept_exits();
  if (!ended.empty())
    spdlog::info("{} tasks ended under an earlier daemon: their ends are reported", ended.size());
  tasks->restore(std::move(ended));
  return {};
}

std::vector<JobReport> Node::Parts::job_reports() {
  auto reports = channels.take_reports();
  // What is used of a part is measured also where the job says nothing.
  for (const auto attempt : tasks->shares().parts()) {
    const bool gpu = gpu_shares->has(attempt);
    reports.push_back({attempt,
                       system_clock().wall_ms(),
                       {},
                       gpu ? gpu_shares->used_ns(attempt) : shares->cpu_ns(attempt),
                       0,
                       gpu ? gpu_shares->stood_ns(attempt) : shares->waited_ns(attempt),
                       channels.takes_checkpoints(attempt)});
  }
  for (auto& report : reports) report.milli_units = tasks->shares().of(report.attempt);
  return reports;
}

void Node::Parts::make_link() {
  auto facts = std::make_shared<NodeFacts>(
      NodeFacts{config, topology, shared_units, calibration, executor->limits(),
                probe ? probe->subjects() : std::vector<SubjectState>{}, *placement,
                executor->why_pauses_pass_unnoticed(), instance, data_address,
                instances.predecessors(), users});
  CoordinatorLink::Parts parts{
      .loop = loop,
      .clock = system_clock(),
      .events = events,
      .tasks = *tasks,
      .node = kj::heap<NodeService>(*tasks, *pool, dirs, channels, config.task_users.others()),
      .write_info = [facts](auto to) { write_info(to, *facts); },
      .write_status = [this](auto to) { status->write(to); },
      .job_reports = [this] { return job_reports(); },
      .replicas = [this] { return pool->replicas(); },
      .extend_lease =
          [this](int64_t deadline_ns, int64_t sent_ns) {
            if (auto done = executor->extend_lease(deadline_ns, sent_ns); !done)
              spdlog::error("lease: {}", done.error().message);
          },
      .say = [](const std::string& text) { notify_status(text); },
      .registered =
          [this] {
            if (auto kept = instances.registered(); !kept) spdlog::warn("{}", kept.error().message);
          },
  };
  link = std::make_unique<CoordinatorLink>(std::move(parts), *Address::parse(config.coordinator),
                                           tls, instance);
}

}  // namespace tierpilot::agent
