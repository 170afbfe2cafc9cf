// The operator's health commands: about which units they are asked, and what their answers do.
#include "base/log.h"
#include "daemon/agent/node/node_parts.h"

namespace tierpilot::agent {
namespace {

constexpr const char* kKind = "health command";
constexpr const char* kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

HealthCheck check_of(const std::string& node, const std::string& unit,
                     const std::vector<std::string>& command,
                     std::pair<std::string, std::string> named) {
  HealthCheck check{unit, {.program = command[0]}};
  check.call.arguments.assign(command.begin() + 1, command.end());
  check.call.env = {{"PATH", kPath}, {"TIERPILOT_UNIT", node + "/" + unit}, std::move(named)};
  return check;
}

std::vector<HealthCheck> checks_of(const NodeConfig& config, const Topology& topology) {
  std::vector<HealthCheck> checks;
  const CpuAllocator cpus(config.cpus, config.units);
  for (uint32_t i = 0; i < config.units && !config.health.cpu.empty(); ++i)
    checks.push_back(check_of(config.name, "cpu/" + std::to_string(i), config.health.cpu,
                              {"TIERPILOT_CPUS", format_id_list(cpus.cpus_of({i}))}));
  for (const auto& gpu : topology.gpus)
    if (!gpu.uuid.empty() && !config.health.gpu.empty())
      checks.push_back(check_of(config.name, "gpu/" + gpu.uuid, config.health.gpu,
                                {"CUDA_VISIBLE_DEVICES", gpu.uuid}));
  return checks;
}

}  // namespace

void Node::Parts::check_units() {
  auto checks = checks_of(config, topology);
  if (checks.empty()) return;
  const auto found = [this](const std::string& unit, const std::string& reason) {
    if (!health.say(unit, "command", reason)) return;
    spdlog::warn("unit {}: {}", unit, reason);
    events.add(UnitFaultEvent{unit, kKind, reason});
    if (unit.starts_with("gpu/")) gpu_shares->device_failed(unit.substr(4), reason);
  };
  health_checks = std::make_unique<HealthChecks>(
      std::move(checks),
      HealthChecks::Options{config.health.period_s * 1000, config.health.timeout_s * 1000},
      HealthChecks::Hooks{
          .post = [this](std::function<void()> work) { loop.post(std::move(work)); },
          .found = found});
}

}  // namespace tierpilot::agent
