// tiertool move stat: what moved in a while, how fast, and who waited for it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/output/arguments.h"
#include "tools/tiertool/move.h"
#include "tools/tiertool/move_cgroups.h"
#include "tools/tiertool/move_rows.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct StatOptions {
  double seconds = 5;
  bool faults = false;
  double cpu_percent = PassiveOptions{}.cpu_share * 100;
  std::vector<std::string> cgroups;
};

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

// Whatever moved, by the kernel's own counters; how much of it was watched is beside it.
void set_machine(ordered_json& value, const MigrationStats& seen) {
  const auto& pages = seen.machine;
  set_count(value, "pages_moved", pages ? std::optional(pages->moved) : std::nullopt,
            seen.machine_unavailable);
  set_count(value, "pages_failed", pages ? std::optional(pages->failed) : std::nullopt,
            seen.machine_unavailable);
  set_or_unavailable(value, "watched_pages_share", seen.watched_pages_share,
                     pages ? "unavailable: no page moved" : seen.machine_unavailable);
  value["watched_time_share"] = seen.watched_time_share;
  value["watched_calls"] = seen.total.calls;
}

// Members for what is on, "<member>_unavailable" for what is not.
ordered_json to_json(const PassiveProbe& probe, const PassiveSample& sample, double seconds) {
  const auto& seen = *sample.migration;
  ordered_json value{{"seconds", seconds}};
  set_machine(value, seen);
  value["migrations"] = migration_rows(seen, seen.pairs_unavailable);
  value["waits"] = wait_rows(sample);
  if (!seen.pairs_unavailable.empty()) value["nodes_unavailable"] = seen.pairs_unavailable;
  value["numa_hint"] = hint_value(sample.numa_hint);
  if (sample.fault_time) {
    value["fault_times"] = fault_rows(*sample.fault_time);
    value["fault_times_lost"] = sample.fault_time->lost;
  }
  for (const auto& state : probe.subjects())
    if (!state.reason.empty()) value["reasons"][state.subject] = state.reason;
  return value;
}

const std::vector<Column> kMoved{{"FROM", "/from_node"},
                                 {"TO", "/to_node"},
                                 {"REASON", "/reason"},
                                 {"CALLS", "/calls", Format::kNumber},
                                 {"PAGES", "/pages_moved", Format::kNumber},
                                 {"FAILED", "/pages_failed", Format::kNumber},
                                 {"BUSY ms", "/busy_ms", Format::kNumber},
                                 {"GB/s", "/gb_per_s", Format::kNumber}};
const std::vector<Column> kFaults{{"NODE", "/node"},
                                  {"FAULTS ~", "/estimated_faults", Format::kNumber},
                                  {"TIMED", "/timed", Format::kNumber},
                                  {"P50 us", "/p50_us", Format::kNumber},
                                  {"P99 us", "/p99_us", Format::kNumber}};

std::vector<Column> by_cgroup(std::vector<Column> columns) {
  columns.insert(columns.begin(), {"CGROUP", "/cgroup"});
  return columns;
}

std::vector<Table> tables(const ordered_json& value, const std::string& nodes_unavailable) {
  const double seconds = value["seconds"];
  std::string none = fmt::format("No page migrated within {} s.", seconds);
  if (!nodes_unavailable.empty()) none += "\nNodes: " + nodes_unavailable;
  std::vector<Table> list{{.title = fmt::format("page migrations of {} s", seconds),
                           .rows = "/migrations",
                           .columns = kMoved,
                           .empty = none},
                          {.title = "waits for memory",
                           .rows = "/waits",
                           .columns = {{"FOR", "/kind"},
                                       {"COUNT", "/count", Format::kNumber},
                                       {"P50 us", "/p50_us", Format::kNumber},
                                       {"P99 us", "/p99_us", Format::kNumber}},
                           .empty = "Not seen here: see 'tiertool feature probe'."}};
  if (value.contains("fault_times"))
    list.push_back({.title = "page faults, sampled", .rows = "/fault_times", .columns = kFaults});
  if (value.contains("cgroups"))
    list.push_back({.title = "migrations of pages charged to cgroups",
                    .rows = "/cgroups",
                    .columns = by_cgroup(kMoved),
                    .empty = "None of them."});
  if (value.contains("cgroup_fault_times"))
    list.push_back({.title = "page faults by processes in cgroups, sampled",
                    .rows = "/cgroup_fault_times",
                    .columns = by_cgroup(kFaults)});
  return list;
}

std::vector<std::string> shortcomings(const PassiveProbe& probe, const PassiveSample& sample,
                                      const StatOptions& options) {
  std::vector<std::string> warnings;
  const auto& seen = *sample.migration;
  if (seen.watched_time_share < 1)
    warnings.push_back(fmt::format(
        "migrations: watched for {:.1f} % of the time{}: their calls are too many for {} % of a "
        "CPU; see --cpu",
        seen.watched_time_share * 100,
        seen.watched_pages_share
            ? fmt::format(", {:.1f} % of the pages", *seen.watched_pages_share * 100)
            : "",
        options.cpu_percent));
  if (const auto lost = seen.lost_calls; lost > 0)
    warnings.push_back(fmt::format(
        "migrations: {} calls have neither nodes nor a duration: too many were in progress", lost));
  if (options.faults && !sample.fault_time)
    for (const auto& state : probe.subjects())
      if (state.subject == "fault_time") warnings.push_back("fault times: " + state.reason);
  if (sample.fault_time && sample.fault_time->lost > 0)
    warnings.push_back(fmt::format("fault times: {} samples were lost", sample.fault_time->lost));
  if (!options.cgroups.empty() && !seen.pairs_unavailable.empty())
    warnings.push_back("cgroups: " + seen.pairs_unavailable);
  return warnings;
}

int stat(const Context& context, const StatOptions& options) {
  const auto cgroups = find_cgroups(options.cgroups);
  if (!cgroups) return print_error(context.output, cgroups.error());
  PassiveOptions wanted{.subjects = {"migration", "reclaim", "compaction", "numa_hint"},
                        .cpu_share = options.cpu_percent / 100};
  if (options.faults) wanted.subjects.emplace_back("fault_time");
  const auto probe = watch_migrations(context, std::move(wanted));
  if (!probe) return print_error(context.output, probe.error());
  for (const auto& cgroup : *cgroups) (*probe)->track_cgroup(cgroup.id);
  const auto start = std::chrono::steady_clock::now();
  StopSignals().wait(options.seconds);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  const auto sample = (*probe)->sample();
  auto value = to_json(**probe, sample, std::round(passed.count() * 10) / 10);
  if (!cgroups->empty()) add_cgroups(value, **probe, *cgroups);
  return print(context.output, value, tables(value, sample.migration->pairs_unavailable),
               shortcomings(**probe, sample, options));
}

}  // namespace

void add_move_stat(CLI::App& move, Context& context) {
  auto* verb =
      move.add_subcommand("stat", "count the kernel's page migrations by nodes and reason");
  auto options = std::make_shared<StatOptions>();
  add_seconds(*verb, options->seconds);
  verb->add_flag("--faults", options->faults,
                 "also time page faults by node; slows every fault of the machine meanwhile");
  verb->add_option("--cpu", options->cpu_percent,
                   "percent of one core that watching migrations may take on average; where calls "
                   "are too many they are watched in turns. 0: no limit")
      ->check(number_between(0.0, 100.0))
      ->capture_default_str();
  verb->add_option("--cgroup", options->cgroups,
                   "also by this cgroup v2, whose pages they are; can be repeated");
  verb->callback([&context, options] {
    context.command = [&context, options] { return stat(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
