#include "daemon/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/bytes.h"
#include "rpc/address.h"
#include "rpc/metrics_page.h"

namespace tierpilot {
namespace {

// Names end up in file names, environments and tables.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 63 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

std::string address(ConfigSection& section, std::string_view key, std::string fallback,
                    bool has_tls) {
  auto text = section.text(key, std::move(fallback));
  if (auto parsed = Address::parse(text); !parsed)
    section.complain(key, parsed.error().message);
  else if (parsed->kind == Address::Kind::kTls && !has_tls)
    section.complain(key, "a tls: address needs ca, certificate and key in [tls]");
  return text;
}

std::filesystem::path absolute_path(ConfigSection& section, std::string_view key,
                                    std::string fallback) {
  std::filesystem::path path = section.text(key, std::move(fallback));
  if (!path.is_absolute()) section.complain(key, "must be an absolute path");
  return path;
}

std::optional<int> numa_node(ConfigSection& section, std::string_view key) {
  const auto node = section.integer(key, -1, 0, 1023);
  return node < 0 ? std::nullopt : std::optional<int>(static_cast<int>(node));
}

std::string one_of(ConfigSection& section, std::string_view key, std::string fallback,
                   const std::vector<std::string>& allowed) {
  auto value = section.text(key, std::move(fallback));
  if (std::find(allowed.begin(), allowed.end(), value) == allowed.end())
    section.complain(key, fmt::format("must be one of {}", fmt::join(allowed, ", ")));
  return value;
}

NodeConfig::Tls read_tls(ConfigReader& reader) {
  auto section = reader.section("tls");
  NodeConfig::Tls tls{section.text("ca", ""), section.text("certificate", ""),
                      section.text("key", ""), section.text("crl", "")};
  const int given = !tls.ca.empty() + !tls.certificate.empty() + !tls.key.empty();
  if (given != 0 && given != 3)
    section.complain(tls.ca.empty()            ? "ca"
                     : tls.certificate.empty() ? "certificate"
                                               : "key",
                     "is missing: ca, certificate and key belong together");
  if (given == 0 && !tls.crl.empty())
    section.complain("crl", "has no meaning without ca, certificate and key");
  return tls;
}

NodeConfig::Pool read_pool(ConfigReader& reader) {
  auto section = reader.section("pool");
  NodeConfig::Pool pool;
  pool.fast_dir = absolute_path(section, "fast_dir", "/dev/shm/tierpilot");
  pool.fast_budget_bytes = section.bytes("fast_budget", kGiB);
  pool.fast_node = numa_node(section, "fast_node");
  pool.slow_dir = absolute_path(section, "slow_dir", "/var/lib/tierpilot/slow");
  pool.slow_budget_bytes = section.bytes("slow_budget", 16 * kGiB);
  pool.slow_kind = one_of(section, "slow_kind", "auto", {"auto", "directory", "node"});
  pool.slow_node_dir = absolute_path(section, "slow_node_dir", pool.fast_dir.native() + "-slow");
  pool.slow_node = numa_node(section, "slow_node");
  pool.workers = static_cast<int>(section.integer("workers", 2, 1, 64));
  pool.readers = static_cast<int>(section.integer("readers", 2, 1, 64));
  if (pool.fast_budget_bytes < kMiB) section.complain("fast_budget", "must be at least 1 MiB");
  if (pool.slow_budget_bytes < kMiB) section.complain("slow_budget", "must be at least 1 MiB");
  if (pool.fast_dir == pool.slow_dir)
    section.complain("slow_dir", "must not be the directory of fast_dir");
  if (pool.fast_dir == pool.slow_node_dir)
    section.complain("slow_node_dir", "must not be the directory of fast_dir");
  if (pool.slow_node && pool.slow_kind == "directory")
    section.complain("slow_node", "has no meaning when slow_kind is \"directory\"");
  if (pool.slow_node && pool.slow_node == pool.fast_node)
    section.complain("slow_node", "must not be fast_node");
  return pool;
}

NodeConfig::Probe read_probe(ConfigReader& reader) {
  auto section = reader.section("probe");
  NodeConfig::Probe probe;
  probe.calibrate = section.boolean("calibrate", true);
  probe.passive = section.boolean("passive", true);
  probe.fault_times = section.boolean("fault_times", false);
  probe.passive_cpu_share = section.number("passive_cpu_share", 0.005, 0, 1);
  probe.rounds = static_cast<int>(section.integer("rounds", 3, 1, 99));
  probe.timeout_ms = section.integer("timeout_ms", 20'000, 100, 600'000);
  return probe;
}

void read_cpus(ConfigSection& section, const MachineDefaults& machine, NodeConfig& config) {
  config.cpus = section.id_list("cpus", machine.cpus);
  std::sort(config.cpus.begin(), config.cpus.end());
  config.cpus.erase(std::unique(config.cpus.begin(), config.cpus.end()), config.cpus.end());
  if (config.cpus.empty()) section.complain("cpus", "must name at least one CPU");
  const std::set<int> usable(machine.cpus.begin(), machine.cpus.end());
  for (int cpu : config.cpus)
    if (!usable.contains(cpu))
      section.complain("cpus", fmt::format("CPU {} is not among those this process may use ({})",
                                           cpu, format_id_list(machine.cpus)));
  const auto cpu_count = std::max<int64_t>(1, static_cast<int64_t>(config.cpus.size()));
  config.units = static_cast<uint32_t>(section.integer("units", cpu_count, 1, 4096));
}

void read_shared_gpus(ConfigSection& section, const std::set<int>& usable, NodeConfig& config) {
  auto& gpus = config.shared_gpus;
  gpus.uuids = section.texts("gpus", {});
  for (const auto& uuid : gpus.uuids)
    if (uuid.starts_with("MIG-"))
      section.complain("gpus",
                       fmt::format("'{}': parts of GPUs made by MIG cannot be shared, whole "
                                   "GPUs only",
                                   uuid));
    else if (uuid != "all" && !uuid.starts_with("GPU-"))
      section.complain("gpus", fmt::format("'{}' is no UUID of a GPU as nvidia-smi -L shows it, "
                                           "nor \"all\"",
                                           uuid));
  gpus.cpus = section.id_list("gpu_cpus", config.cpus);
  for (const int cpu : gpus.cpus)
    if (!usable.contains(cpu))
      section.complain("gpu_cpus",
                       fmt::format("CPU {} is not among those this process may use", cpu));
  gpus.mps = section.text("mps", "auto");
  if (gpus.mps != "auto" && gpus.mps != "always" && gpus.mps != "never")
    section.complain("mps", "must be auto, always or never");
  gpus.mps_control = section.text("mps_control", "nvidia-cuda-mps-control");
}

// Each gets as many of the CPUs.
void read_shared_units(ConfigReader& reader, const MachineDefaults& machine, NodeConfig& config) {
  auto section = reader.section("sharing");
  const auto cpus = section.id_list("cpus", {});
  const std::set<int> usable(machine.cpus.begin(), machine.cpus.end());
  for (const int cpu : cpus)
    if (!usable.contains(cpu))
      section.complain("cpus", fmt::format("CPU {} is not among those this process may use ({})",
                                           cpu, format_id_list(machine.cpus)));
  read_shared_gpus(section, usable, config);
  const auto most = static_cast<int64_t>(cpus.size());
  const auto units = section.integer("units", most, 0, 1024);
  if (units > most)
    section.complain("units", fmt::format("a unit is one CPU or more, `cpus` names {}", most));
  if (units <= 0 || units > most) return;
  config.shared_units.resize(static_cast<size_t>(units));
  for (size_t i = 0; i < cpus.size(); ++i)
    config.shared_units[i * static_cast<size_t>(units) / cpus.size()].push_back(cpus[i]);
}

std::vector<std::string> health_command(ConfigSection& section, std::string_view engine) {
  auto command = section.texts(engine, {});
  if (!command.empty() && !command[0].starts_with('/'))
    section.complain(engine, fmt::format("'{}' must be the absolute path of a program, followed by "
                                         "its arguments",
                                         command[0]));
  else if (!command.empty() && ::access(command[0].c_str(), X_OK) != 0)
    section.complain(engine, fmt::format("'{}' cannot be run here: {}", command[0],
                                         fmt::string_view(std::strerror(errno))));
  return command;
}

void read_health(ConfigReader& reader, NodeConfig::Health& health) {
  auto section = reader.section("health");
  health.cpu = health_command(section, "cpu");
  health.gpu = health_command(section, "gpu");
  health.period_s = section.integer("period_s", 60, 1, 86'400);
  health.timeout_s = section.integer("timeout_s", 30, 1, 3600);
}

void read_node(ConfigReader& reader, const MachineDefaults& machine, bool has_tls,
               NodeConfig& config) {
  auto section = reader.section("node");
  config.name = section.text("name", machine.hostname);
  if (!is_plain_name(config.name))
    section.complain("name", "must be 1 to 63 letters, digits, '-', '_' or '.'");
  config.coordinator =
      address(section, "coordinator", "unix:/run/tierpilot/coordinator.sock", has_tls);
  config.data_listen = address(section, "data_listen", "unix:/run/tierpilot/data.sock", has_tls);
  config.data_advertise = address(section, "data_advertise", config.data_listen, has_tls);
  if (const auto dialled = Address::parse(config.data_advertise);
      dialled && dialled->kind == Address::Kind::kTls &&
      (dialled->host == "0.0.0.0" || dialled->host == "::"))
    section.complain("data_advertise",
                     "is needed: other nodes cannot dial " + dialled->to_string());
  read_cpus(section, machine, config);
  read_shared_units(reader, machine, config);
  config.memory_bytes = section.bytes("memory", machine.memory_bytes);
  if (config.memory_bytes < kMiB) section.complain("memory", "must be at least 1 MiB");
  config.work_dir = absolute_path(section, "work_dir", "/var/lib/tierpilot");
  config.keep_logs_s = section.integer("keep_logs_s", 24 * 3600, 0, 366 * 24 * 3600);
  config.keep_logs_bytes = section.bytes("keep_logs", kGiB);
  config.log_bytes = section.bytes("task_log", 256 * kMiB);
  if (config.log_bytes < kMiB) section.complain("task_log", "must be at least 1 MiB");
  config.cgroup = section.text("cgroup", "");
  if (!config.cgroup.empty() && !config.cgroup.starts_with('/'))
    section.complain("cgroup", "must be a path such as \"/tierpilot/n1\"");
  config.cancel_grace_ms = section.integer("cancel_grace_ms", 2000, 0, 600'000);
  config.drain_s = section.integer("drain_s", 10, 0, 30 * 24 * 3600);
}

}  // namespace

Result<MachineDefaults> machine_defaults(const Sysroot& sysroot) {
  MachineDefaults machine;
  char hostname[256] = {};
  if (gethostname(hostname, sizeof hostname - 1) != 0) return fail_errno(errno, "host name");
  machine.hostname = hostname;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return fail_errno(errno, "own CPU affinity");
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) machine.cpus.push_back(cpu);
  auto meminfo = sysroot.read("/proc/meminfo");
  if (!meminfo) return tl::unexpected(meminfo.error());
  unsigned long long total_kib = 0;
  if (std::sscanf(meminfo->c_str(), "MemTotal: %llu kB", &total_kib) != 1)
    return fail(ErrorCode::kUnavailable, "/proc/meminfo: no MemTotal in its first line");
  // A quarter stays for the system, the page cache and the daemon's own fast tier.
  machine.memory_bytes = total_kib * 1024 / 4 * 3;
  if (const auto nodes = sysroot.read("/sys/devices/system/node/has_memory"))
    machine.numa_nodes = parse_id_list(*nodes).value_or(std::vector<int>());
  return machine;
}

Result<NodeConfig> read_config(ConfigReader reader, const MachineDefaults& machine) {
  NodeConfig config;
  config.tls = read_tls(reader);
  read_node(reader, machine, !config.tls.ca.empty(), config);
  config.pool = read_pool(reader);
  read_health(reader, config.health);
  config.swap_tiers = read_swap_tiers(reader, machine.numa_nodes);
  config.probe = read_probe(reader);
  config.placement = read_paging(reader);
  config.task_users = read_task_users(reader, config.units);
  if (config.task_users.others() && config.shared_gpus.mps == "always")
    reader.section("sharing").complain(
        "mps", "MPS serves one user only: it goes with tasks.run_as = \"daemon\" alone");
  auto metrics = reader.section("metrics");
  config.metrics_listen = metrics.text("listen", "");
  if (const auto address = MetricsAddress::parse(config.metrics_listen);
      !config.metrics_listen.empty() && !address)
    metrics.complain("listen", address.error().message);
  else if (address && address->tls && config.tls.ca.empty())
    metrics.complain("listen", "needs [tls] ca, certificate and key");
  auto log = reader.section("log");
  config.log_level =
      one_of(log, "level", "info", {"trace", "debug", "info", "warning", "error", "critical"});
  if (auto status = reader.finish(); !status) return tl::unexpected(status.error());
  return config;
}

Result<NodeConfig> load_config(const std::filesystem::path& path, const MachineDefaults& machine) {
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  return read_config(std::move(*reader), machine);
}

}  // namespace tierpilot
