// tierpilotd: the node daemon.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/descriptors.h"
#include "base/log.h"
#include "daemon/agent/node/node.h"
#include "daemon/config.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int complain(const tierpilot::Error& error) {
  std::fprintf(stderr, "tierpilotd: %s\n", error.message.c_str());
  return kFailed;
}

int serve(const tierpilot::NodeConfig& config) {
  if (auto status = tierpilot::start_log("tierpilotd", config.log_level); !status)
    return complain(status.error());
  auto node = tierpilot::agent::Node::start(config);
  if (!node) {
    spdlog::critical("{}", node.error().message);
    return kFailed;
  }
  return (*node)->run();
}

}  // namespace

int main(int argc, char** argv) {
  tierpilot::occupy_standard_streams();
  std::string config_file = "/etc/tierpilot/tierpilotd.toml";
  bool check_only = false;
  CLI::App app{"Tierpilot node daemon: measures memory tiers, keeps datasets, runs tasks."};
  app.add_option("-c,--config", config_file, "configuration file")->capture_default_str();
  app.add_flag("--check-config", check_only, "check the configuration and exit");
  app.set_version_flag("-V,--version", "tierpilotd " TIERPILOT_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }

  auto machine = tierpilot::machine_defaults(tierpilot::Sysroot("/"));
  if (!machine) return complain(machine.error());
  auto config = tierpilot::load_config(config_file, *machine);
  if (!config) return complain(config.error());
  if (!check_only) return serve(*config);
  std::printf("%s: ok\n", config_file.c_str());
  return 0;
}
