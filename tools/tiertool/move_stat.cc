// tiertool move stat: what moved in a while, how fast, and who waited for it.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/tiertool/move.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct StatOptions {
  double seconds = 5;
  bool faults = false;
};

ordered_json counts_row(const std::string& reason, const MigrationStats::Reason& counts) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  ordered_json row{{"reason", reason},
                   {"calls", counts.calls},
                   {"pages_moved", counts.pages_moved},
                   {"pages_failed", counts.pages_failed},
                   {"bytes_moved", counts.pages_moved * page_bytes},
                   {"busy_ms", static_cast<double>(counts.busy_ns) / 1e6}};
  const auto bytes = static_cast<double>(counts.timed_pages * page_bytes);
  set_or_unavailable(row, "gb_per_s",
                     counts.timed_pages > 0
                         ? std::optional(bytes / static_cast<double>(counts.busy_ns))
                         : std::nullopt,
                     "unavailable: no page moved in a timed call");
  return row;
}

// A row per pair of nodes and reason; where pairs are not told apart, per reason.
ordered_json migration_rows(const MigrationStats& stats) {
  ordered_json rows = ordered_json::array();
  for (const auto& pair : stats.pairs) {
    for (const auto& [reason, counts] : pair.by_reason) {
      auto row = counts_row(reason, counts);
      set_nodes(row, pair.from_node, pair.to_node, "");
      rows.push_back(std::move(row));
    }
  }
  if (stats.pairs_unavailable.empty()) return rows;
  for (const auto& [reason, counts] : stats.by_reason) {
    auto row = counts_row(reason, counts);
    set_nodes(row, std::nullopt, std::nullopt, stats.pairs_unavailable);
    rows.push_back(std::move(row));
  }
  return rows;
}

void set_quantiles(ordered_json& row, const Histogram& durations_ns) {
  for (const auto& [key, q] : {std::pair("p50_us", 0.5), {"p99_us", 0.99}})
    set_or_unavailable(
        row, key,
        durations_ns.count() > 0 ? std::optional(durations_ns.quantile(q) / 1e3) : std::nullopt,
        "unavailable: none seen");
}

ordered_json wait_row(const std::string& kind, uint64_t count, const Histogram& durations_ns) {
  ordered_json row{{"kind", kind}, {"count", count}};
  set_quantiles(row, durations_ns);
  return row;
}

ordered_json wait_rows(const PassiveSample& sample) {
  ordered_json rows = ordered_json::array();
  if (const auto& reclaim = sample.reclaim) {
    rows.push_back(wait_row("direct reclaim", reclaim->direct.calls, reclaim->direct.duration_ns));
    rows.push_back(wait_row("memcg reclaim", reclaim->memcg.calls, reclaim->memcg.duration_ns));
  }
  if (const auto& compaction = sample.compaction) {
    const auto& [direct, background, untimed] = *compaction;
    rows.push_back(wait_row("compaction", direct.zones, direct.duration_ns));
    rows.push_back(wait_row("kcompactd", background.zones, background.duration_ns));
  }
  return rows;
}

ordered_json hint_value(const std::optional<NumaHintStats>& hints) {
  if (!hints) return nullptr;
  ordered_json value{{"faults", hints->faults}, {"source", hints->source}};
  const auto why = "unavailable: not told by " + hints->source;
  set_count(value, "pages", hints->pages, why);
  set_count(value, "migrated_pages", hints->migrated_pages, why);
  for (const auto& [node, pages] : hints->pages_by_node)
    value["pages_by_node"][std::to_string(node)] = pages;
  return value;
}

ordered_json fault_rows(const FaultTimeStats& stats) {
  ordered_json rows = ordered_json::array();
  const auto add = [&](std::optional<int> node, const Histogram& durations_ns) {
    ordered_json row;
    set_count(row, "node", node, "unavailable: these faults allocated no page");
    row["timed"] = durations_ns.count();
    row["estimated_faults"] = durations_ns.count() * stats.period;
    set_quantiles(row, durations_ns);
    rows.push_back(std::move(row));
  };
  for (const auto& [node, durations_ns] : stats.by_node_ns) add(node, durations_ns);
  add(std::nullopt, stats.no_page_ns);
  return rows;
}

// Members for what is on, "<member>_unavailable" for what is not.
ordered_json to_json(const PassiveProbe& probe, const PassiveSample& sample, double seconds) {
  const auto& seen = *sample.migration;
  ordered_json value{{"seconds", seconds},
                     {"calls", seen.total.calls},
                     {"pages_moved", seen.total.pages_moved},
                     {"pages_failed", seen.total.pages_failed},
                     {"migrations", migration_rows(seen)},
                     {"waits", wait_rows(sample)}};
  if (!seen.pairs_unavailable.empty()) value["nodes_unavailable"] = seen.pairs_unavailable;
  value["numa_hint"] = hint_value(sample.numa_hint);
  if (sample.fault_time) value["fault_times"] = fault_rows(*sample.fault_time);
  for (const auto& state : probe.subjects())
    if (!state.reason.empty()) value["reasons"][state.subject] = state.reason;
  return value;
}

std::vector<Table> tables(const MigrationStats& seen, double seconds, bool faults) {
  const Column count{"COUNT", "/count", Format::kNumber};
  const Column p50{"P50 us", "/p50_us", Format::kNumber}, p99{"P99 us", "/p99_us", Format::kNumber};
  std::string none = fmt::format("No page migrated within {} s.", seconds);
  if (!seen.pairs_unavailable.empty()) none += "\nNodes: " + seen.pairs_unavailable;
  std::vector<Table> list{{.title = fmt::format("page migrations of {} s", seconds),
                           .rows = "/migrations",
                           .columns = {{"FROM", "/from_node"},
                                       {"TO", "/to_node"},
                                       {"REASON", "/reason"},
                                       {"CALLS", "/calls", Format::kNumber},
                                       {"PAGES", "/pages_moved", Format::kNumber},
                                       {"FAILED", "/pages_failed", Format::kNumber},
                                       {"BUSY ms", "/busy_ms", Format::kNumber},
                                       {"GB/s", "/gb_per_s", Format::kNumber}},
                           .empty = none},
                          {.title = "waits for memory",
                           .rows = "/waits",
                           .columns = {{"FOR", "/kind"}, count, p50, p99},
                           .empty = "Not seen here: see 'tiertool feature probe'."}};
  if (faults)
    list.push_back({.title = "page faults, sampled",
                    .rows = "/fault_times",
                    .columns = {{"NODE", "/node"},
                                {"FAULTS ~", "/estimated_faults", Format::kNumber},
                                {"TIMED", "/timed", Format::kNumber},
                                p50,
                                p99},
                    .empty = "Not timed here: see 'tiertool feature probe'."});
  return list;
}

int stat(const Context& context, const StatOptions& options) {
  PassiveOptions wanted{.subjects = {"migration", "reclaim", "compaction", "numa_hint"}};
  if (options.faults) wanted.subjects.emplace_back("fault_time");
  const auto probe = watch_migrations(std::move(wanted));
  if (!probe) return print_error(context.output, probe.error());
  const auto start = std::chrono::steady_clock::now();
  StopSignals().wait(options.seconds);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const double seconds = std::round(passed.count() * 10) / 10;
  const auto sample = (*probe)->sample();
  std::vector<std::string> warnings;
  if (options.faults && !sample.fault_time)
    for (const auto& state : (*probe)->subjects())
      if (state.subject == "fault_time") warnings.push_back("fault times: " + state.reason);
  return print(context.output, to_json(**probe, sample, seconds),
               tables(*sample.migration, seconds, sample.fault_time.has_value()), warnings);
}

}  // namespace

void add_move_stat(CLI::App& move, Context& context) {
  auto* verb =
      move.add_subcommand("stat", "count the kernel's page migrations by nodes and reason");
  auto options = std::make_shared<StatOptions>();
  add_seconds(*verb, options->seconds);
  verb->add_flag("--faults", options->faults,
                 "also time page faults by node; slows every fault of the machine meanwhile");
  verb->callback([&context, options] {
    context.command = [&context, options] { return stat(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
