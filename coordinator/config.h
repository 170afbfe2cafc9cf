// The coordinator's configuration: one TOML file, checked whole before anything starts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "coordinator/core/cluster_state.h"
#include "coordinator/core/decisions/oversight.h"
#include "coordinator/service/access.h"
#include "policies/learning/training_pace.h"
#include "policies/placement/registry.h"
#include "rpc/address.h"
#include "rpc/metrics_page.h"
#include "rpc/tls/tls.h"

namespace tierpilot {

struct CoordinatorConfig {
  std::string log_level = "info";
  std::filesystem::path state_dir;
  std::optional<Address> listen_unix;
  std::optional<Address> listen_tls;
  std::optional<TlsFiles> tls;
  std::optional<MetricsAddress> metrics;
  AccessRules access;
  size_t max_connections = 0;  // per address that is listened on
  CoreSettings core;
  int64_t keep_history_ms = 0;
  std::string policy;
  OversightSettings oversight;
  size_t versions_kept = 0;
  int64_t version_interval_ms = 0;
  uint64_t seed = 0;
  PlacementModules policies = placement_modules();
  TrainingPace training;
  std::vector<std::string> hints;  // what an operator should change in the file, a line each
};

// Every wrong value and unknown key in one error, a line each.
Result<CoordinatorConfig> load_coordinator_config(const std::filesystem::path& path);
Result<CoordinatorConfig> read_coordinator_config(ConfigReader reader);

}  // namespace tierpilot
