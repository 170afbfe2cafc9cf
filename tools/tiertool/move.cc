// tiertool move stat|trace|run: page migration on this machine, seen and made.
#include "tools/tiertool/move.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
using std::chrono::steady_clock;

constexpr size_t kMaxEvents = 10'000;

struct SeenOptions {
  double seconds = 5;
  uint64_t min_pages = 1;
};

Result<std::unique_ptr<PassiveProbe>> start_probe(const SeenOptions& options) {
  auto probe = PassiveProbe::start(
      {.subjects = {"migration"}, .event_pages = options.min_pages, .run_time_stats = false});
  const auto& state = probe->subjects().at(0);
  if (!state.on) return fail(ErrorCode::kUnavailable, "page migration: " + state.reason);
  return probe;
}

int stat(const Context& context, const SeenOptions& options) {
  auto probe = start_probe(options);
  if (!probe) return print_error(context.output, probe.error());
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const auto sample = (*probe)->sample();
  const auto& seen = *sample.migration;
  ordered_json value{{"seconds", options.seconds},
                     {"calls", seen.calls},
                     {"pages_moved", seen.pages_moved},
                     {"pages_failed", seen.pages_failed},
                     {"reasons", ordered_json::array()}};
  for (const auto& [reason, counts] : seen.by_reason) {
    if (counts.calls == 0) continue;
    value["reasons"].push_back({{"reason", reason},
                                {"calls", counts.calls},
                                {"pages_moved", counts.pages_moved},
                                {"pages_failed", counts.pages_failed},
                                {"busy_ms", static_cast<double>(counts.busy_ns) / 1e6}});
  }
  return print(context.output, value,
               {{.title = fmt::format("page migrations of {} s", options.seconds),
                 .rows = "/reasons",
                 .columns = {{"REASON", "/reason"},
                             {"CALLS", "/calls", Format::kNumber},
                             {"PAGES", "/pages_moved", Format::kNumber},
                             {"FAILED", "/pages_failed", Format::kNumber},
                             {"BUSY ms", "/busy_ms", Format::kNumber}},
                 .empty = fmt::format("No page migrated within {} s.", options.seconds)}});
}

ordered_json event_row(const PassiveEvent& event, int64_t start_boot_ns) {
  ordered_json row{{"at_s", static_cast<double>(event.end_boot_ns - start_boot_ns) / 1e9},
                   {"reason", event.detail},
                   {"pages", event.pages},
                   {"pages_failed", event.pages_failed},
                   {"pid", event.pid},
                   {"command", event.command}};
  set_or_unavailable(row, "duration_us",
                     event.duration_ns
                         ? std::optional(static_cast<double>(*event.duration_ns) / 1e3)
                         : std::nullopt,
                     "unavailable: nested in another migration, or begun before the trace");
  return row;
}

int trace(const Context& context, const SeenOptions& options) {
  auto probe = start_probe(options);
  if (!probe) return print_error(context.output, probe.error());
  const int64_t start_boot_ns = tierpilot::system_clock().boot_ns();
  const auto deadline = steady_clock::now() + std::chrono::duration<double>(options.seconds);
  ordered_json events = ordered_json::array();
  while (steady_clock::now() < deadline && events.size() < kMaxEvents) {
    // The ring holds a thousand events: it is emptied before it is full.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (const auto& event : (*probe)->drain_events())
      if (event.kind == PassiveEvent::Kind::kMigration && events.size() < kMaxEvents)
        events.push_back(event_row(event, start_boot_ns));
  }
  std::vector<std::string> warnings;
  if (events.size() == kMaxEvents)
    warnings.push_back(
        fmt::format("the trace ends after {} migrations: see --min-pages", kMaxEvents));
  return print(context.output, {{"events", std::move(events)}},
               {{.rows = "/events",
                 .columns = {{"AT s", "/at_s", Format::kNumber},
                             {"REASON", "/reason"},
                             {"PAGES", "/pages", Format::kNumber},
                             {"FAILED", "/pages_failed", Format::kNumber},
                             {"TOOK us", "/duration_us", Format::kNumber},
                             {"PID", "/pid"},
                             {"COMMAND", "/command"}},
                 .empty = fmt::format("No page migrated within {} s.", options.seconds)}},
               warnings);
}

void add_seen_verb(CLI::App& move, Context& context, const std::string& name,
                   const std::string& help, int (*run)(const Context&, const SeenOptions&)) {
  auto* verb = move.add_subcommand(name, help);
  auto options = std::make_shared<SeenOptions>();
  verb->add_option("--seconds", options->seconds, "how long to watch")
      ->check(CLI::Range(0.1, 86'400.0))
      ->capture_default_str();
  if (name == "trace")
    verb->add_option("--min-pages", options->min_pages, "leave out smaller migrations")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  verb->callback([&context, options, run] {
    context.command = [&context, options, run] { return run(context, *options); };
  });
}

}  // namespace

void add_move(CLI::App& app, Context& context) {
  auto* move = app.add_subcommand("move", "pages that move between memory nodes");
  move->require_subcommand(1);
  add_seen_verb(*move, context, "stat", "count the kernel's page migrations by reason", stat);
  add_seen_verb(*move, context, "trace", "list the kernel's page migrations", trace);
  add_move_run(*move, context);
}

}  // namespace tierpilot::tiertool
