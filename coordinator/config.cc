#include "coordinator/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/data_file.h"
#include "base/files/open_to_read.h"
#include "coordinator/core/data/dataset_admin.h"
#include "policies/gang/learned/hosted_placers.h"
#include "policies/placement/measures.h"
#include "policies/quality/allocator.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot {
namespace {

std::filesystem::path installed_path(const std::string& file) {
  return std::filesystem::path(TIERPILOT_DATA_DIR) / file;
}

// Empty where it is not.
std::filesystem::path installed(const std::string& file) {
  const auto path = installed_path(file);
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? path : std::filesystem::path();
}

std::optional<Address> read_address(ConfigSection& section, const char* key, Address::Kind kind,
                                    const char* fallback) {
  const auto text = section.text(key, fallback);
  if (text.empty()) return std::nullopt;
  auto address = Address::parse(text);
  if (!address) {
    section.complain(key, address.error().message);
    return std::nullopt;
  }
  if (address->kind != kind) {
    section.complain(
        key, kind == Address::Kind::kUnix ? "must be a unix: address" : "must be a tls: address");
    return std::nullopt;
  }
  return *address;
}

void read_listen(ConfigReader& reader, CoordinatorConfig& config) {
  auto listen = reader.section("listen");
  config.listen_unix =
      read_address(listen, "unix", Address::Kind::kUnix, "unix:/run/tierpilot/coordinator.sock");
  config.listen_tls = read_address(listen, "tls", Address::Kind::kTls, "");
  auto tls = reader.section("tls");
  const TlsFiles files{tls.text("ca", ""), tls.text("certificate", ""), tls.text("key", ""),
                       tls.text("crl", "")};
  const bool complete = !files.ca.empty() && !files.certificate.empty() && !files.key.empty();
  if (complete) config.tls = files;
  if (config.listen_tls && !complete)
    listen.complain("tls",
                    "needs [tls] ca, certificate and key: between machines there is only "
                    "mutual TLS");
  config.max_connections =
      static_cast<size_t>(listen.integer("max_connections", 20'000, 1, 1'000'000));
  auto metrics = reader.section("metrics");
  if (const auto text = metrics.text("listen", ""); !text.empty()) {
    if (auto address = MetricsAddress::parse(text); !address)
      metrics.complain("listen", address.error().message);
    else if (address->tls && !complete)
      metrics.complain("listen", "needs [tls] ca, certificate and key");
    else
      config.metrics = *address;
  }
  if (!config.listen_unix && !config.listen_tls) listen.complain("unix", "nothing to listen on");
}

// Without the shipped weights, where nobody named others, the heuristic that the default policy is
// held against takes its place.
std::string read_gang_policy(ConfigSection& gang, CoreSettings& core) {
  const auto nearby = find_data_file("ac.weights");
  const auto shipped = nearby ? *nearby : installed("ac.weights");
  core.gang_weights = gang.text("weights", "");
  const bool named = !core.gang_weights.empty();
  if (!named) core.gang_weights = shipped.empty() ? installed_path("ac.weights") : shipped;
  const auto policy = gang.text("policy", gang::kDefaultGangPolicy);
  if (policy != gang::kDefaultGangPolicy || !shipped.empty() || named) return policy;
  gang.hint(
      "policy",
      fmt::format("'{}' decides where gangs run, not '{}', whose weights are missing: '{}' is "
                  "not there, and {}; name their file in `weights`",
                  gang::kGangHeuristic, policy, core.gang_weights, nearby.error().message));
  return gang::kGangHeuristic;
}

void read_gang(ConfigReader& reader, CoreSettings& core) {
  auto gang = reader.section("gang");
  core.gang_policy = read_gang_policy(gang, core);
  const auto* module = gang::hosted_placers().find(core.gang_policy);
  if (!module)
    gang.complain("policy",
                  fmt::format("'{}' does not place gangs: use one of {}", core.gang_policy,
                              fmt::join(gang::hosted_placers().names(), ", ")));
  else if (auto placer = module->make({.weights = core.gang_weights}); !placer)
    gang.complain("weights", placer.error().message);
  const auto mode = gang.text("mode", policy_mode_name(core.gang_mode));
  if (const auto known = parse_policy_mode(mode))
    core.gang_mode = *known;
  else
    gang.complain("mode", "must be one of shadow, advise, enforce");
  core.gang_estimate_h = gang.number("estimate_min", core.gang_estimate_h * 60, 1, 1e6) / 60;
  auto& costs = core.gang_costs;
  costs.checkpoint_h = gang.number("checkpoint_s", costs.checkpoint_h * 3600, 0, 86'400) / 3600;
  costs.restart_h = gang.number("restart_s", costs.restart_h * 3600, 0, 86'400) / 3600;
  costs.repair_h = gang.number("repair_min", costs.repair_h * 60, 0, 1e6) / 60;
  core.quarantine_failures = static_cast<uint32_t>(
      gang.integer("quarantine_failures", core.quarantine_failures, 0, 1'000'000));
  core.quarantine_window_ms =
      gang.integer("quarantine_hours", core.quarantine_window_ms / 3'600'000, 1, 24 * 366) *
      3'600'000;
  core.checkpoints = static_cast<uint32_t>(gang.integer("checkpoints", core.checkpoints, 3, 1000));
  core.gang_patience_ms =
      gang.integer("patience_s", core.gang_patience_ms / 1000, 0, 86'400) * 1000;
}

void read_users(ConfigReader& reader, AccessRules& access) {
  auto users = reader.section("users");
  for (const auto role : {Role::kRead, Role::kSubmit, Role::kOperate}) {
    const auto key = std::string(role_name(role));
    for (const auto& name : users.texts(key, {}))
      if (!access.users.emplace(name, role).second)
        users.complain(key, fmt::format("'{}' has another role already", name));
  }
  const auto others = users.text("others", std::string(role_name(access.others)));
  if (const auto role = parse_role(others))
    access.others = *role;
  else
    users.complain("others", "must be one of none, read, submit, operate");
  if (!users.has("nodes")) return;
  const auto nodes = users.texts("nodes", {});
  access.nodes = std::set<std::string>(nodes.begin(), nodes.end());
}

void read_elastic(ConfigReader& reader, CoreSettings& core) {
  auto section = reader.section("elastic");
  core.elastic_allocator = section.text("allocator", core.elastic_allocator);
  if (auto made = quality::make_allocator(core.elastic_allocator); !made)
    section.complain("allocator", made.error().message);
  core.elastic_guard = section.boolean("guard", core.elastic_guard);
  core.elastic_period_ms =
      section.integer("period_s", core.elastic_period_ms / 1000, 1, 3600) * 1000;
  core.elastic_horizon_ms =
      section.integer("horizon_s", core.elastic_horizon_ms / 1000, 1, 86'400) * 1000;
}

Result<std::shared_ptr<const sharing::JobPredictor>> load_predictor(const std::string& path) {
  constexpr size_t kMostBytes = 64 << 20;
  const auto text = read_small_file(path, kMostBytes);
  if (!text) return tl::unexpected(text.error());
  auto predictor = sharing::JobPredictor::read(*text);
  if (!predictor) return fail(predictor.error().code, path + ": " + predictor.error().message);
  return std::make_shared<const sharing::JobPredictor>(std::move(*predictor));
}

void read_shares(ConfigReader& reader, CoreSettings& core) {
  auto section = reader.section("sharing");
  core.share_policy = section.text("policy", core.share_policy);
  if (auto made = sharing::make_share_policy(core.share_policy, {}); !made)
    section.complain("policy", made.error().message);
  const auto file = section.text("predictor", installed("job-predictor.json"));
  if (!file.empty()) {
    if (auto predictor = load_predictor(file))
      core.share_predictor = std::move(*predictor);
    else
      section.complain("predictor", predictor.error().message);
  }
  core.share_period_ms = section.integer("period_s", core.share_period_ms / 1000, 1, 3600) * 1000;
  core.preemption_grace_ms =
      section.integer("preemption_grace_s", core.preemption_grace_ms / 1000, 0, 3600) * 1000;
}

void read_core(ConfigReader& reader, CoordinatorConfig& config) {
  auto& core = config.core;
  auto lease = reader.section("lease");
  core.lease_ms = lease.integer("duration_ms", core.lease_ms, 500, 600'000);
  auto queue = reader.section("queue");
  const auto order = queue.text("order", "shortest");
  if (const auto known = service_order_from_name(order))
    core.service_order = *known;
  else
    queue.complain("order", "must be one of shortest, arrival");
  core.backlog_units =
      static_cast<uint32_t>(queue.integer("backlog_units", core.backlog_units, 0, 4096));
  core.max_attempts =
      static_cast<uint32_t>(queue.integer("max_attempts", core.max_attempts, 1, 100));
  auto& limits = core.queue_limits;
  const auto limit = [&](const char* key, uint64_t fallback, int64_t least, int64_t most) {
    return static_cast<uint64_t>(queue.integer(key, static_cast<int64_t>(fallback), least, most));
  };
  limits.tasks = limit("max_tasks", limits.tasks, 1, 100'000'000);
  limits.tasks_per_user = limit("max_tasks_per_user", limits.tasks_per_user, 1, 100'000'000);
  limits.bytes = queue.bytes("max_bytes", limits.bytes);
  limits.bytes_per_user = queue.bytes("max_bytes_per_user", limits.bytes_per_user);
  read_gang(reader, core);
  read_elastic(reader, core);
  read_shares(reader, core);
  config.keep_history_ms = queue.integer("keep_history_hours", 24 * 30, 0, 24 * 3650) * 3'600'000;
  auto data = reader.section("data");
  core.replicas = static_cast<uint32_t>(data.integer("replicas", core.replicas, 1, kMostReplicas));
  core.replica_grace_ms =
      data.integer("grace_s", core.replica_grace_ms / 1000, 0, 7 * 86'400) * 1000;
  auto reward = reader.section("reward");
  core.reward.utilisation_weight =
      reward.number("utilisation_weight", core.reward.utilisation_weight, 0, 1);
  core.reward.penalty_floor = reward.number("penalty_floor", core.reward.penalty_floor, -1, 0);
}

void read_policy(ConfigReader& reader, CoordinatorConfig& config) {
  auto policy = reader.section("policy");
  config.policy = policy.text("active", kDefaultPolicy);
  config.policies = read_placement_modules(reader, installed);
  config.training = read_training_pace(reader);
  if (!config.policies.find(config.policy))
    policy.complain("active", fmt::format("'{}' is not a policy: use one of {}", config.policy,
                                          fmt::join(config.policies.names(), ", ")));
  const auto mode = policy.text("mode", "enforce");
  if (const auto known = parse_policy_mode(mode))
    config.oversight.mode = *known;
  else
    policy.complain("mode", "must be one of shadow, advise, enforce");
  config.oversight.advice_band = policy.number("advice_band", config.oversight.advice_band, 0, 100);
  config.versions_kept = static_cast<size_t>(policy.integer("versions_kept", 10, 0, 1000));
  config.version_interval_ms = policy.integer("version_interval_min", 30, 1, 100'000) * 60'000;
  config.core.hold_tasks = policy.boolean("hold", config.core.hold_tasks);
  config.core.considered_nodes = static_cast<uint32_t>(
      policy.integer("considered_nodes", config.core.considered_nodes, 1, NodeSlots::kMost));
  config.core.recorded_nodes = static_cast<uint32_t>(
      policy.integer("recorded_nodes", config.core.recorded_nodes, 1, NodeSlots::kMost));
  config.core.decision_deadline_us =
      policy.integer("deadline_us", config.core.decision_deadline_us, 100, 10'000'000);
  config.seed = static_cast<uint64_t>(policy.integer("seed", 1, 0, INT64_MAX));
  config.oversight.seed = config.seed;
}

void read_guard(ConfigReader& reader, CoordinatorConfig& config) {
  auto section = reader.section("guard");
  auto& guard = config.oversight.guard;
  const auto count = [&](const char* key, auto& value, int64_t min, int64_t max) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(
        section.integer(key, static_cast<int64_t>(value), min, max));
  };
  guard.on = section.boolean("on", guard.on);
  guard.control_share = section.number("control_share", guard.control_share, 0.001, 0.5);
  guard.false_alarm = section.number("false_alarm", guard.false_alarm, 1e-6, 0.5);
  count("round_outcomes", guard.round_outcomes, 20, 1'000'000);
  count("faults_to_depose", guard.faults_to_depose, 1, 100);
  count("shadow_answers", guard.shadow_answers, 1, 1'000'000);
  guard.shadow_share = section.number("shadow_share", guard.shadow_share, 0.001, 1);
  count("step_outcomes", guard.step_outcomes, 1, 100'000);
  guard.tolerance = section.number("tolerance", guard.tolerance, 0, 1);
  config.oversight.measures = placement_measures(config.core.reward);
}

}  // namespace

Result<CoordinatorConfig> load_coordinator_config(const std::filesystem::path& path) {
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  return read_coordinator_config(std::move(*reader));
}

Result<CoordinatorConfig> read_coordinator_config(ConfigReader reader) {
  CoordinatorConfig config;
  auto top = reader.section("coordinator");
  config.state_dir = top.text("state_dir", "/var/lib/tierpilot-coordinator");
  if (!config.state_dir.is_absolute()) top.complain("state_dir", "must be an absolute path");
  read_users(reader, config.access);
  auto log = reader.section("log");
  config.log_level = log.text("level", "info");
  static constexpr std::array kLevels{"trace", "debug",    "info", "warning",
                                      "error", "critical", "off"};
  if (std::find(kLevels.begin(), kLevels.end(), config.log_level) == kLevels.end())
    log.complain("level", fmt::format("must be one of {}", fmt::join(kLevels, ", ")));
  read_listen(reader, config);
  read_core(reader, config);
  read_policy(reader, config);
  read_guard(reader, config);
  if (auto status = reader.finish(); !status) return tl::unexpected(status.error());
  config.hints = reader.hints();
  return config;
}

}  // namespace tierpilot
