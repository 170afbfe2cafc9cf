#include "daemon/agent/node/node.h"

#include <malloc.h>
#include <sched.h>

#include <csignal>

#include "base/bytes.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "daemon/agent/node/folders.h"
#include "daemon/agent/node/node_parts.h"
#include "daemon/agent/node/systemd.h"

namespace tierpilot::agent {
namespace {

// The daemon stays on the CPUs that were given to it: what it measures is what its tasks will see.
Status stay_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    return fail_errno(errno, fmt::format("node.cpus {}", format_id_list(cpus)));
  return {};
}

// In each directory for swapping this daemon's own, with a folder of each attempt that has room
// there.
Status prepare_swap_folders(const NodeConfig& config) {
  for (const auto& folder : SwapRoom(config.swap_tiers, config.name).folders()) {
    const bool others = config.task_users.others();
    auto ready = own_folder(folder, others ? 0711 : 0700);
    if (ready && others) ready = passable_above(folder);
    if (!ready) return ready;
  }
  return {};
}

Status prepare_folders(const NodeConfig& config) {
  if (auto ready = prepare_swap_folders(config); !ready) return ready;
  if (!config.task_users.others()) return {};
  return let_others_pass(config.work_dir)
      .and_then([&] { return let_others_pass(config.work_dir / "tasks"); })
      .and_then([&] { return let_others_pass(config.pool.fast_dir); })
      .and_then([&] { return keep_to_oneself(config.pool.slow_dir); });
}

}  // namespace

Node::Node(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::start(const NodeConfig& config) {
  if (auto status = stay_on(config.cpus); !status) return tl::unexpected(status.error());
  auto dirs = TaskDirs::open(config.work_dir, {config.keep_logs_s, config.keep_logs_bytes});
  if (!dirs) return tl::unexpected(dirs.error());
  ExecutorOptions exec;
  exec.cgroup = config.cgroup;
  exec.task_root = config.work_dir / "tasks";
  for (const auto& folder : SwapRoom(config.swap_tiers, config.name).folders())
    exec.folder_roots.push_back(folder);
  const auto& users = config.task_users;
  exec.other_users = users.others();
  exec.first_reserved = users.first;
  exec.last_reserved = users.last;
  exec.lowest_user = users.lowest;
  if (auto folders = prepare_folders(config); !folders) return tl::unexpected(folders.error());
  auto executor = Executor::start(exec);
  if (!executor) return tl::unexpected(executor.error());
  // After the warden was forked: tasks keep the default.
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();

  auto parts = std::make_unique<Parts>(config, std::move(*executor), std::move(*dirs));
  if (auto status = parts->open_tls(); !status) return tl::unexpected(status.error());
  if (auto status = parts->measure(); !status) return tl::unexpected(status.error());
  if (auto status = parts->open_pool(); !status) return tl::unexpected(status.error());
  if (auto made = parts->make_lifecycle(); !made) return tl::unexpected(made.error());
  if (auto status = parts->listen(); !status) return tl::unexpected(status.error());
  if (auto status = parts->serve_metrics(); !status) return tl::unexpected(status.error());
  if (auto status = parts->take_over(); !status) return tl::unexpected(status.error());
  parts->make_link();
  parts->watch_gpus();
  parts->read_gpus();
  parts->poll_gpus();
  parts->check_units();
  parts->watch();
  if (config.task_users.others())
    spdlog::info("{}", parts->users.description());
  else
    spdlog::warn("{}", parts->users.description());
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
