#include "tools/demo/demo_cluster.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "tools/cluster/message_json.h"
#include "tools/cluster/program.h"

namespace tierpilot::demo {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kStartTimeoutMs = 60'000;
constexpr int64_t kEmptyTimeoutMs = 15'000;
constexpr int64_t kPollMs = 50;

// Calls `ready` until it gives true; an error from it, or the timeout, ends the wait.
template <class Ready>
Status poll_until(int64_t timeout_ms, const std::string& what, Ready ready) {
  const int64_t deadline_ns = system_clock().boot_ns() + timeout_ms * 1'000'000;
  for (;;) {
    const Result<bool> now = ready();
    if (!now) return tl::unexpected(now.error());
    if (*now) return {};
    if (system_clock().boot_ns() > deadline_ns)
      return fail(ErrorCode::kTimeout, fmt::format("{} within {} s", what, timeout_ms / 1000));
    usleep(kPollMs * 1000);
  }
}

}  // namespace

Result<std::unique_ptr<DemoCluster>> DemoCluster::start(const Layout& layout, Progress& progress) {
  const auto coordinator = find_program("tierpilot-coordinator");
  if (!coordinator) return tl::unexpected(coordinator.error());
  const auto daemon = find_program("tierpilotd");
  if (!daemon) return tl::unexpected(daemon.error());
  if (auto status = write_layout(layout); !status) return tl::unexpected(status.error());
  auto cluster = std::make_unique<DemoCluster>();
  progress.show("starting the coordinator");
  if (auto status = cluster->start_coordinator(layout, *coordinator); !status)
    return tl::unexpected(status.error());
  for (const auto& node : layout.nodes) {
    progress.show(fmt::format("starting node {}: it measures its memory tiers", node.name));
    if (auto status = cluster->start_node(node, *daemon); !status)
      return tl::unexpected(status.error());
  }
  return cluster;
}

Status DemoCluster::start_coordinator(const Layout& layout, const std::string& program) {
  auto process = DaemonProcess::start("tierpilot-coordinator",
                                      {program, "--config", layout.coordinator_config},
                                      layout.coordinator_log);
  if (!process) return tl::unexpected(process.error());
  daemons_.push_back(std::move(*process));
  const auto status =
      poll_until(kStartTimeoutMs, "the coordinator did not answer", [&]() -> Result<bool> {
        if (auto alive = check(); !alive) return tl::unexpected(alive.error());
        auto connection = ClusterConnection::open({.address = layout.address});
        if (!connection) return false;
        connection_ = std::move(*connection);
        return true;
      });
  if (status || status.error().code != ErrorCode::kTimeout) return status;
  return tl::unexpected(daemons_.back().with_log(status.error()));
}

Status DemoCluster::start_node(const NodePlan& node, const std::string& program) {
  std::vector<std::string> argv{"/usr/bin/env"};
  argv.insert(argv.end(), node.env.begin(), node.env.end());
  argv.insert(argv.end(), {program, "--config", node.config});
  auto process = DaemonProcess::start("tierpilotd of " + node.name, argv, node.log);
  if (!process) return tl::unexpected(process.error());
  daemons_.push_back(std::move(*process));
  const auto status = wait_for_node(node.name);
  if (status || status.error().code != ErrorCode::kTimeout) return status;
  return tl::unexpected(daemons_.back().with_log(status.error()));
}

Status DemoCluster::wait_for_node(const std::string& name) {
  return poll_until(kStartTimeoutMs, fmt::format("node {} did not register", name),
                    [&]() -> Result<bool> {
                      if (auto alive = check(); !alive) return tl::unexpected(alive.error());
                      auto answer = connection_->call(connection_->cluster().nodeListRequest());
                      if (!answer) return tl::unexpected(answer.error());
                      for (const auto node : answer->getNodes())
                        if (node.getInfo().getName() == name && node.getState() == "up")
                          return true;
                      return false;
                    });
}

Status DemoCluster::check() {
  for (auto& daemon : daemons_)
    if (auto status = daemon.check(); !status) return status;
  return {};
}

Result<ordered_json> DemoCluster::tiers() {
  auto answer = connection_->call(connection_->cluster().nodeListRequest());
  if (!answer) return tl::unexpected(answer.error());
  auto tiers = ordered_json::array();
  for (const auto node : answer->getNodes())
    for (const auto tier : node.getInfo().getTiers()) {
      ordered_json row{{"node", node.getInfo().getName().cStr()}};
      row.update(message_json(tier));
      tiers.push_back(std::move(row));
    }
  return tiers;
}

Status DemoCluster::wait_until_empty() {
  return poll_until(
      kEmptyTimeoutMs, "the nodes did not drop their datasets", [&]() -> Result<bool> {
        if (auto alive = check(); !alive) return tl::unexpected(alive.error());
        auto answer = connection_->call(connection_->cluster().nodeListRequest());
        if (!answer) return tl::unexpected(answer.error());
        for (const auto node : answer->getNodes())
          if (node.getStatus().getFastFreeBytes() != node.getInfo().getFastBudgetBytes())
            return false;
        return true;
      });
}

}  // namespace tierpilot::demo
