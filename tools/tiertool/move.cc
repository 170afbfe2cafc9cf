// tiertool move stat|trace|run: page migration on this machine, seen and made.
#include "tools/tiertool/move.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tools/output/arguments.h"

namespace tierpilot::tiertool {

using nlohmann::ordered_json;
using std::chrono::steady_clock;

void add_seconds(CLI::App& verb, double& seconds) {
  verb.add_option("--seconds", seconds, "how long to watch; 0: until Ctrl-C")
      ->check(number_between(0.0, 86'400.0))
      ->capture_default_str();
}

Result<std::unique_ptr<PassiveProbe>> watch_migrations(const Context& context,
                                                       PassiveOptions options) {
  if (context.foreign_root)
    return fail(ErrorCode::kUnavailable,
                "migrations of another machine's files cannot be seen: leave out --sysroot");
  options.run_time_stats = false;
  auto probe = PassiveProbe::start(options);
  const auto& state = probe->subjects().at(0);
  if (!state.on) return fail(ErrorCode::kUnavailable, "page migration: " + state.reason);
  return probe;
}

void set_count(ordered_json& row, const std::string& key, const std::optional<uint64_t>& count,
               const std::string& why_not) {
  if (count)
    row[key] = *count;
  else
    set_or_unavailable(row, key, std::nullopt, why_not);
}

void set_nodes(ordered_json& row, const std::optional<int>& from, const std::optional<int>& to,
               const std::string& pairs_unavailable) {
  const bool told = pairs_unavailable.empty();
  set_count(row, "from_node", from,
            told ? "unavailable: pages of several nodes in one call, or it began unseen"
                 : pairs_unavailable);
  set_count(
      row, "to_node", to,
      told ? "unavailable: a memory policy chooses it, or it began unseen" : pairs_unavailable);
}

StopSignals::StopSignals() {
  ::sigemptyset(&signals_);
  ::sigaddset(&signals_, SIGINT);
  ::sigaddset(&signals_, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  fd_.reset(::signalfd(-1, &signals_, SFD_CLOEXEC));
}

StopSignals::~StopSignals() {
  // One that came is taken here; it would end the process as soon as it is let through.
  constexpr timespec kNow{};
  while (::sigtimedwait(&signals_, nullptr, &kNow) > 0) continue;
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::wait(double seconds, int fd, const std::function<bool()>& ready) {
  const auto end = steady_clock::now() + std::chrono::duration<double>(seconds);
  std::array<pollfd, 2> waits{{{fd_.get(), POLLIN, 0}, {fd, POLLIN, 0}}};
  for (;;) {
    const auto left = std::chrono::duration<double, std::milli>(end - steady_clock::now()).count();
    if (seconds > 0 && left <= 0) return;
    const int found =
        ::poll(waits.data(), waits.size(), seconds > 0 ? static_cast<int>(left) + 1 : -1);
    if (found < 0 && errno != EINTR) return;
    if (found > 0 && waits[0].revents != 0) return;
    if (found > 0 && waits[1].revents != 0 && !ready()) return;
  }
}

void add_move(CLI::App& app, Context& context) {
  auto* move = app.add_subcommand("move", "pages that move between memory nodes");
  move->require_subcommand(1);
  add_move_stat(*move, context);
  add_move_trace(*move, context);
  add_move_run(*move, context);
}

}  // namespace tierpilot::tiertool
