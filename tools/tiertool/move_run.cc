// tiertool move run PID: places the pages of a process that is not Tierpilot's own.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/bytes.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/move.h"
#include "tools/tiertool/watching.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct RunOptions {
  WatchOptions watch;
  std::string policy = "heat";
  std::string mode = "observe";
  std::string fast_budget;
  std::string cap = "256MiB";
  double cpu_percent = 5;
  std::optional<size_t> static_tier{};
  size_t limit = 20;
};

Status compile(RunOptions& options) {
  auto& watch = options.watch;
  const auto policy = policy_from_name(options.policy);
  if (!policy) return tl::unexpected(policy.error());
  const auto mode = mode_from_name(options.mode);
  if (!mode) return tl::unexpected(mode.error());
  const auto cap = parse_bytes(options.cap);
  if (!cap) return tl::unexpected(cap.error());
  if (options.static_tier && *policy != PagingPolicy::kStatic)
    return fail(ErrorCode::kInvalid, "--tier is for --policy static");
  if (auto known = check_tracker(watch.tracker); !known) return known;
  watch.group = {
      .name = "command line", .policy = *policy, .static_tier = options.static_tier.value_or(0)};
  watch.mode = *mode;
  watch.loop.bytes_per_s = *cap;
  watch.loop.cpu_share = options.cpu_percent / 100;
  if (options.fast_budget.empty()) return {};
  const auto budget = parse_bytes(options.fast_budget);
  if (!budget) return tl::unexpected(budget.error());
  watch.group.fast_budget_bytes = *budget;
  return {};
}

ordered_json tier_rows(const Watch& watch) {
  ordered_json rows = ordered_json::array();
  for (size_t t = 0; t < watch.tiers.size(); ++t) {
    uint64_t bytes = 0;
    for (const auto& chunk : watch.view.chunks) bytes += chunk.bytes_in(t);
    const auto& tier = watch.tiers[t];
    rows.push_back({{"tier", tier.name},
                    {"nodes", tier.nodes},
                    {"latency_ns", tier.latency_ns},
                    {"free_bytes", tier.free_bytes},
                    {"process_bytes", bytes}});
  }
  return rows;
}

ordered_json move_rows(const Watch& watch) {
  ordered_json rows = ordered_json::array();
  for (const auto& move : watch.plan.moves)
    rows.push_back({{"start", fmt::format("{:#x}", move.start)},
                    {"end", fmt::format("{:#x}", move.end)},
                    {"bytes", move.bytes},
                    {"from", watch.tiers.at(move.from_tier).name},
                    {"to", watch.tiers.at(move.to_tier).name},
                    {"reason", move_reason_text(move.reason)},
                    {"accesses_per_page_s", move.heat},
                    {"gain_ns_per_s", move.gain_ns_per_s}});
  return rows;
}

ordered_json result_of(const Watch& watch, const RunOptions& options) {
  const auto& counters = watch.counters;
  ordered_json failures = ordered_json::array();
  for (const auto& [err, pages] : counters.failed_pages)
    failures.push_back({{"errno", err}, {"reason", std::strerror(err)}, {"pages", pages}});
  return {
      {"pid", watch.view.target.pid},
      {"policy", options.policy},
      {"mode", mode_name(watch.view.target.mode)},
      {"tracker", tracker_to_json(watch)},
      {"latency_source", watch.latency_source},
      {"watched_s", watch.watched_s},
      {"rounds", counters.rounds},
      {"slowed_rounds", counters.slowed_rounds},
      {"tracked_bytes", watch.view.tracked_bytes},
      {"promoted_bytes", counters.promoted_bytes},
      {"demoted_bytes", counters.demoted_bytes},
      {"advised_bytes", counters.advised_bytes},
      {"cpu_share", static_cast<double>(counters.cpu_ns) / 1e9 / watch.watched_s},
      {"tracker_cpu_share", static_cast<double>(counters.tracker_cpu_ns) / 1e9 / watch.watched_s},
      {"failures", failures},
      {"tiers", tier_rows(watch)},
      {"moves", move_rows(watch)},
      {"notes", watch.plan.notes}};
}

std::vector<Table> tables_of(const ordered_json& value, const RunOptions& options) {
  const size_t moves = value["moves"].size();
  std::vector<Table> tables{
      {.columns = {{"tracker", "/tracker/name"},
                   {"does not see", "/tracker/blind_spots"},
                   {"mode", "/mode"},
                   {"tracked", "/tracked_bytes", Format::kBytes},
                   {"promoted", "/promoted_bytes", Format::kBytes},
                   {"demoted", "/demoted_bytes", Format::kBytes},
                   {"own CPU", "/cpu_share", Format::kPercent},
                   {"tracker's CPU", "/tracker_cpu_share", Format::kPercent}}},
      {.title = "tiers, fast to slow; latencies by " + value["latency_source"].get<std::string>(),
       .rows = "/tiers",
       .columns = {{"TIER", "/tier"},
                   {"LATENCY ns", "/latency_ns", Format::kNumber},
                   {"FREE", "/free_bytes", Format::kBytes},
                   {"OF THE PROCESS", "/process_bytes", Format::kBytes}}}};
  if (options.watch.mode != PagingMode::kObserve)
    tables.push_back(
        {.title = moves > options.limit
                      ? fmt::format("the first {} of {} moves", options.limit, moves)
                      : "",
         .rows = "/shown",
         .columns = {{"START", "/start"},
                     {"SIZE", "/bytes", Format::kBytes},
                     {"FROM", "/from"},
                     {"TO", "/to"},
                     {"REASON", "/reason"},
                     {"ACCESSES per page and s", "/accesses_per_page_s", Format::kNumber},
                     {"GAIN ns/s", "/gain_ns_per_s", Format::kNumber}},
         .empty = "No move is worth it."});
  if (!value["failures"].empty())
    tables.push_back({.title = "pages that could not be moved",
                      .rows = "/failures",
                      .columns = {{"REASON", "/reason"}, {"PAGES", "/pages", Format::kNumber}}});
  return tables;
}

int run(const Context& context, RunOptions options) {
  if (auto status = compile(options); !status) {
    print_error(context.output, status.error());
    return kExitUsage;
  }
  const auto watch = watch_process(context, options.watch);
  if (!watch) return print_error(context.output, watch.error());
  auto value = result_of(*watch, options);
  const auto warnings = [&] {
    auto all = watch->conflicts;
    all.insert(all.end(), watch->plan.notes.begin(), watch->plan.notes.end());
    if (!watch->view.trouble.empty()) all.push_back(watch->view.trouble);
    if (watch->view.target.mode != options.watch.mode)
      all.push_back(
          fmt::format("nothing is moved, only advised: tracker {} does not see all "
                      "accesses alike; name it with --tracker to move by it all the same",
                      tracker_name(watch->tracker.traits.kind)));
    return all;
  }();
  const auto tables = tables_of(value, options);
  if (!context.output.json) {
    auto& moves = value["moves"];
    value["shown"] = ordered_json(
        moves.begin(), moves.begin() + static_cast<long>(std::min(moves.size(), options.limit)));
  }
  return print(context.output, value, tables, warnings);
}

}  // namespace

void add_move_run(CLI::App& move, Context& context) {
  auto* verb = move.add_subcommand("run", "place a process's pages for a while");
  auto options = std::make_shared<RunOptions>();
  options->watch.seconds = 10;
  add_watch_options(*verb, options->watch);
  verb->add_option("--policy", options->policy, "what decides where pages belong")
      ->type_name("static|heat|balance")
      ->capture_default_str();
  verb->add_option("--mode", options->mode,
                   "observe: look only; advise: plan too; enforce: move pages")
      ->type_name("observe|advise|enforce")
      ->capture_default_str();
  verb->add_option("--fast-budget", options->fast_budget,
                   "how much of the fastest tier the process may hold (\"2GiB\")")
      ->type_name("SIZE");
  verb->add_option("--tier", options->static_tier, "for static: which tier, 0 is the fastest")
      ->check(whole_number())
      ->default_str("0");
  verb->add_option("--cap", options->cap, "bytes moved per second at most")
      ->type_name("SIZE")
      ->capture_default_str();
  verb->add_option("--cpu", options->cpu_percent, "percent of one core, on average; 0: no limit")
      ->check(number_between(0.0, 100.0))
      ->capture_default_str();
  verb->add_option("--limit", options->limit, "moves in the table (JSON has all)")
      ->check(whole_number())
      ->capture_default_str();
  verb->callback([&context, options] {
    context.command = [&context, options] { return run(context, *options); };
  });
}

}  // namespace tierpilot::tiertool
