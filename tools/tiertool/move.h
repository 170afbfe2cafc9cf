// The verbs of "move", one file each, and what the watching ones share. Internal.
#pragma once

#include <signal.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "base/unique_fd.h"
#include "daemon/probe/passive/passive_probe.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {

void add_move_run(CLI::App& move, Context& context);
void add_move_stat(CLI::App& move, Context& context);
void add_move_trace(CLI::App& move, Context& context);

// --seconds, the same for both.
void add_seconds(CLI::App& verb, double& seconds);

// Starts the subjects; kUnavailable when migrations, the first one, cannot be seen, as on another
// machine.
Result<std::unique_ptr<PassiveProbe>> watch_migrations(const Context& context,
                                                       PassiveOptions options);

// As set_or_unavailable, for whole numbers.
void set_count(nlohmann::ordered_json& row, const std::string& key,
               const std::optional<uint64_t>& count, const std::string& why_not);
// "from_node" and "to_node", or why they are not told.
void set_nodes(nlohmann::ordered_json& row, const std::optional<int>& from,
               const std::optional<int>& to, const std::string& pairs_unavailable);

// While it lives, SIGINT and SIGTERM end the wait instead of the process.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  // Calls `ready` whenever `fd` (-1: none) can be read, until `seconds` have passed (0: no limit),
  // a signal came or `ready` returns false.
  void wait(double seconds, int fd = -1, const std::function<bool()>& ready = nullptr);

 private:
  sigset_t signals_{}, before_{};
  UniqueFd fd_;
};

}  // namespace tierpilot::tiertool
