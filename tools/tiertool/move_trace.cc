// tiertool move trace: each migration as it happens; with -j a JSON object per line.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text/printable.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/move.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr const char* kLine = "{:>9} {:>4} {:>4} {:18} {:>7} {:>7} {:>9} {:>8} {}\n";

struct TraceOptions {
  double seconds = 5;
  uint64_t min_pages = 1;
};

class Trace {
 public:
  Trace(const Output& output, PassiveProbe& probe)
      : output_(output),
        probe_(probe),
        pairs_unavailable_(probe.sample().migration->pairs_unavailable),
        start_boot_ns_(tierpilot::system_clock().boot_ns()) {
    if (!pairs_unavailable_.empty())
      fmt::print(*output_.err, "warning: nodes: {}\n", pairs_unavailable_);
    if (!output_.json)
      fmt::print(*output_.out, kLine, "AT s", "FROM", "TO", "REASON", "PAGES", "FAILED", "TOOK us",
                 "PID", "COMMAND");
    output_.out->flush();
  }

  // From where to where pages went.
  bool knows_nodes() const { return pairs_unavailable_.empty(); }
  // False when nobody reads any more.
  bool write_events() {
    for (const auto& event : probe_.drain_events()) {
      if (event.kind != PassiveEvent::Kind::kMigration) continue;
      if (output_.json)
        *output_.out << to_json(event).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                     << '\n';
      else
        write_line(event);
    }
    return static_cast<bool>(output_.out->flush());
  }

 private:
  double at_s(const PassiveEvent& event) const {
    return static_cast<double>(event.end_boot_ns - start_boot_ns_) / 1e9;
  }

  ordered_json to_json(const PassiveEvent& event) const {
    ordered_json row{{"schema", kSchema},
                     {"at_s", at_s(event)},
                     {"reason", event.detail},
                     {"pages", event.pages},
                     {"pages_failed", event.pages_failed},
                     {"pid", event.pid},
                     {"command", event.command}};
    set_nodes(row, event.from_node, event.to_node, pairs_unavailable_);
    set_or_unavailable(row, "duration_us",
                       event.duration_ns
                           ? std::optional(static_cast<double>(*event.duration_ns) / 1e3)
                           : std::nullopt,
                       "unavailable: nested in another migration, or begun before the trace");
    return row;
  }

  void write_line(const PassiveEvent& event) const {
    const auto node = [](const std::optional<int>& id) { return id ? fmt::to_string(*id) : "-"; };
    fmt::print(*output_.out, kLine, fmt::format("{:.3f}", at_s(event)), node(event.from_node),
               node(event.to_node), event.detail, event.pages, event.pages_failed,
               event.duration_ns
                   ? fmt::format("{:.1f}", static_cast<double>(*event.duration_ns) / 1e3)
                   : "-",
               event.pid, printable(event.command));
  }

  const Output& output_;
  PassiveProbe& probe_;
  const std::string pairs_unavailable_;
  const int64_t start_boot_ns_;
};

int trace(const Context& context, const TraceOptions& options) {
  const auto probe = watch_migrations(context, {.subjects = {"migration"},
                                                .event_pages = options.min_pages,
                                                .single_page_period = 1,
                                                .cpu_share = 0});
  if (!probe) return print_error(context.output, probe.error());
  StopSignals signals;
  Trace events(context.output, **probe);
  signals.wait(options.seconds, (*probe)->event_fd(), [&] { return events.write_events(); });
  if (!events.write_events()) return kExitFailed;
  return events.knows_nodes() ? kExitOk : kExitDegraded;
}

}  // namespace

void add_move_trace(CLI::App& move, Context& context) {
  auto* verb = move.add_subcommand("trace", "print the kernel's page migrations as they happen");
  auto options = std::make_shared<TraceOptions>();
  add_seconds(*verb, options->seconds);
  verb->add_option("--min-pages", options->min_pages, "leave out smaller migrations")
      ->check(number_between(1, 1e9).description(""))
      ->capture_default_str();
  verb->callback([&context, options] {
    context.command = [&context, options] { return trace(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
