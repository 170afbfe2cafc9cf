// --connect and its kin, the same for every tool that talks to the coordinator.
#pragma once

#include <string>

#include "tools/cluster/connection.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tierpilot {

// `options` outlives `app`.
void add_connect_options(CLI::App& app, ConnectOptions& options);

// An option whose text is a duration ("30s") or a size ("64MiB").
CLI::Option* add_duration(CLI::App& app, const std::string& name, int64_t& ms,
                          const std::string& help);
CLI::Option* add_size(CLI::App& app, const std::string& name, uint64_t& bytes,
                      const std::string& help);

}  // namespace tierpilot
