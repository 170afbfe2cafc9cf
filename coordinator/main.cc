// tierpilot-coordinator: a wiring diagram.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/process/end.h"
#include "coordinator/config.h"
#include "coordinator/connection_limit.h"
#include "coordinator/service/cluster_service.h"
#include "coordinator/service/core.h"
#include "coordinator/service/metrics.h"
#include "coordinator/store/backup.h"
#include "rpc/server.h"
#include "rpc/tls/tls_refresh.h"

namespace tierpilot {
namespace {

constexpr int64_t kTickMs = 100;

int fail_start(const Error& error) {
  spdlog::critical("{}", error.message);
  sd_notifyf(0, "STATUS=%s", error.message.c_str());
  return 1;
}

// One listener per configured address.
Result<std::vector<std::unique_ptr<RpcServer>>> listen(EventLoop& loop,
                                                       const CoordinatorConfig& config,
                                                       const Tls& tls, ServiceContext& service) {
  std::vector<std::unique_ptr<RpcServer>> servers;
  RpcLimits limits;
  limits.spare_idle_ms = 10'000;  // nodes and waiting clients are not idle for so long
  const uint64_t descriptors = raise_descriptor_limit();
  limits.max_connections = affordable_connections(
      config.max_connections, config.listen_unix && config.listen_tls ? 2 : 1, descriptors);
  if (limits.max_connections < config.max_connections)
    spdlog::warn("{} connections at each address, not {}: {} descriptors are allowed (ulimit -Hn)",
                 limits.max_connections, config.max_connections, descriptors);
  limits.max_connections_of_peer = connections_of_one(limits.max_connections);
  limits.max_handshakes = handshakes_beside(limits.max_connections);
  for (const auto& address : {config.listen_unix, config.listen_tls}) {
    if (!address) continue;
    auto server =
        RpcServer::listen(loop, *address, tls, limits,
                          [&service](const Peer& peer, const auto&) -> capnp::Capability::Client {
                            return wire::Cluster::Client(kj::heap<ClusterService>(service, peer));
                          });
    if (!server) return tl::unexpected(server.error());
    spdlog::info("listening on {}", (*server)->address().to_string());
    servers.push_back(std::move(*server));
  }
  return servers;
}

kj::Promise<void> keep_ticking(ServiceContext& service) {
  return service.loop.after_ms(kTickMs).then([&service] {
    service.core.tick();
    const auto now_ns = service.core.state.clock.boot_ns();
    service.submissions.tick(now_ns);
    service.refusals.tick(now_ns);
    sd_notify(0, "WATCHDOG=1");
    return keep_ticking(service);
  });
}

// Of the configuration only these count before the next start.
void reread_users(const std::string& config_path, ServiceContext& service) {
  auto config = load_coordinator_config(config_path);
  if (!config) return spdlog::error("{}\n[users] stays as it was", config.error().message);
  service.set_access(std::move(config->access));
  spdlog::info("{}: [users] is read again", config_path);
}

// Training allocates and frees megabytes at each step: by glibc's defaults they go back to the
// kernel each time, and a third of the step is page faults.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

Result<std::unique_ptr<PolicyHost>> start_host(const CoordinatorConfig& config) {
  return PolicyHost::start({.modules = config.policies,
                            .pace = config.training,
                            .seed = config.seed,
                            .state_dir = config.state_dir / "policy",
                            .active = config.policy,
                            .versions_kept = config.versions_kept});
}

// From what is on disk.
Status begin(Core& core, const CoordinatorConfig& config) {
  if (auto restored = restore(core.state); !restored) return restored;
  if (auto begun = core.history.begin(config.keep_history_ms); !begun) return begun;
  return core.begin(config.oversight, config.version_interval_ms);
}

// Nothing: there is no TLS.
Result<Tls> load_tls(EventLoop& loop, const CoordinatorConfig& config) {
  if (!config.tls) return Tls();
  auto identity = TlsIdentity::load(*config.tls);
  if (!identity) return tl::unexpected(identity.error());
  const Tls tls = std::move(*identity);
  keep_fresh(loop, tls);
  return tls;
}

// Nothing: they are not asked for.
Result<std::unique_ptr<MetricsPage>> show_metrics(EventLoop& loop, const CoordinatorConfig& config,
                                                  const Tls& tls, const Core& core,
                                                  const ServiceContext& service) {
  if (!config.metrics) return nullptr;
  auto page = MetricsPage::listen(loop, *config.metrics, tls, [&core, &service] {
    return coordinator_metrics(core, service.rejected_frames());
  });
  if (page) spdlog::info("metrics at {}", (*page)->address().to_string());
  return page;
}

int run(const CoordinatorConfig& config, const std::string& config_path) {
  EventLoop loop;
  const auto post = [&loop](std::function<void()> work) { loop.post(std::move(work)); };
  auto store = Store::open(config.state_dir, post);
  if (!store) return fail_start(store.error());
  auto host = start_host(config);
  if (!host) return fail_start(host.error());
  const auto after = [&loop](int64_t us, std::function<void()> then) {
    loop.detach(loop.after_ms((us + 999) / 1000).then([then = std::move(then)] { then(); }),
                "decision deadline");
  };
  Core core(config.core, system_clock(), **store, **host, {post, after});
  if (auto begun = begin(core, config); !begun) return fail_start(begun.error());

  NodeCards cards;
  std::vector<std::unique_ptr<RpcServer>> servers;
  BackupMaker backups(loop, config.state_dir, **host);
  ServiceContext service{loop,
                         core,
                         cards,
                         backups,
                         system_clock().wall_ms(),
                         [&servers] {
                           uint64_t rejected = 0;
                           for (const auto& server : servers) rejected += server->rejected_frames();
                           return rejected;
                         },
                         config.access};
  const auto tls = load_tls(loop, config);
  if (!tls) return fail_start(tls.error());
  auto listening = listen(loop, config, *tls, service);
  if (!listening) return fail_start(listening.error());
  servers = std::move(*listening);
  auto metrics = show_metrics(loop, config, *tls, core, service);
  if (!metrics) return fail_start(metrics.error());
  loop.on_signal({SIGTERM, SIGINT}, [&loop](int signal) {
    spdlog::info("ending on signal {}", signal);
    loop.stop();
  });
  loop.on_signal({SIGHUP}, [&](int) {
    reread_users(config_path, service);
    refresh(*tls);
  });
  loop.detach(keep_ticking(service), "tick");
  spdlog::info("ready: policy '{}', leases of {} ms", config.policy, config.core.lease_ms);
  sd_notify(0, "READY=1");
  loop.run();
  sd_notify(0, "STOPPING=1");
  metrics->reset();
  servers.clear();
  service.submissions.flush();
  service.refusals.flush();
  core.lifecycle.writes().flush_noted();
  core.progress.flush();
  backups.finish();  // it uses the host
  // Its threads call back into the core, which goes before it.
  host->reset();
  return 0;
}

int restore_from(const std::string& backup, const CoordinatorConfig& config) {
  if (auto done = restore_backup(backup, config.state_dir, system_clock().wall_ms()); !done) {
    fmt::print(stderr, "{}\n", done.error().message);
    return 1;
  }
  fmt::print("{}: restored; start the coordinator\n", config.state_dir.string());
  return 0;
}

int main_checked(int argc, char** argv) {
  CLI::App app{"Takes tasks, decides where they run, and learns from what that cost."};
  std::string config_path = "/etc/tierpilot/coordinator.toml";
  bool check_only = false;
  app.add_option("--config", config_path, "Configuration file (TOML)")->capture_default_str();
  app.add_flag("--check-config", check_only, "Read the configuration, say what is wrong, and end");
  std::string backup;
  app.add_option("--restore", backup,
                 "Make the state of a coordinator from this backup, in an empty state directory, "
                 "and end");
  app.set_version_flag("--version", "tierpilot-coordinator " TIERPILOT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  auto config = load_coordinator_config(config_path);
  if (!config) {
    fmt::print(stderr, "{}\n", config.error().message);
    return 1;
  }
  if (check_only) {
    for (const auto& hint : config->hints) fmt::print("hint: {}\n", hint);
    fmt::print("{}: ok\n", config_path);
    return 0;
  }
  ::umask(077);  // it writes down everybody's environments
  if (!backup.empty()) return restore_from(backup, *config);
  if (auto log = start_log("tierpilot-coordinator", config->log_level); !log) {
    fmt::print(stderr, "{}\n", log.error().message);
    return 1;
  }
  for (const auto& hint : config->hints) spdlog::warn("{}", hint);
  keep_freed_memory();
  return run(*config, config_path);
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  tierpilot::occupy_standard_streams();
  tierpilot::end_process(tierpilot::main_checked(argc, argv));
}
