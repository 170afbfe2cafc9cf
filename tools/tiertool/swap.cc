// tiertool swap: a training step under a memory budget, by each policy.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "policies/swap/optimum/optimum.h"
#include "policies/swap/policies.h"
#include "policies/swap/readers.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"
#include "tools/tiertool/swap_record.h"
#include "tools/tiertool/tier_link.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

struct ReplayCommand {
  std::string format = "dtr", log, budget, net, tiers, tier;
  std::vector<double> ratios;
  std::vector<std::string> policies{"swap", "swap-online", "h_DTR", "h_DTR_eq"};
  double gb_per_s = 0, latency_us = 10;
  swap::ReplaySettings settings;
};

Result<std::vector<swap::Graph>> read_log(const ReplayCommand& command) {
  std::vector<swap::Graph> graphs;
  if (command.format == "operators") {
    auto table = swap::read_operator_table(command.log);
    if (!table) return tl::unexpected(table.error());
    for (auto& graph : *table)
      if (command.net.empty() || graph.name == command.net) graphs.push_back(std::move(graph));
    if (graphs.empty())
      return fail(ErrorCode::kNotFound, fmt::format("{}: has no net '{}'; one is '{}'", command.log,
                                                    command.net, table->front().name));
    return graphs;
  }
  auto graph =
      command.format == "dtr" ? swap::read_dtr_log(command.log) : swap::read_step(command.log);
  if (!graph) return tl::unexpected(graph.error());
  graphs.push_back(std::move(*graph));
  return graphs;
}

ordered_json row_of(const swap::Graph& graph, const swap::Baseline& base,
                    const swap::Replayed& replayed, int64_t budget, double took_ms) {
  const auto& outcome = replayed.outcome;
  const auto& counts = outcome.counts;
  ordered_json row{{"net", graph.name},
                   {"operators", graph.operators.size()},
                   {"base_peak_bytes", base.peak_bytes},
                   {"base_time_ns", base.time_ns},
                   {"budget_bytes", budget},
                   {"policy", replayed.policy.name},
                   {"kind", replayed.policy.kind},
                   {"done", outcome.done}};
  set_or_unavailable(row, "overhead",
                     outcome.done ? std::optional(outcome.overhead()) : std::nullopt,
                     outcome.reason);
  row.update({{"peak_bytes", outcome.peak_bytes},
              {"clock_ns", outcome.clock_ns},
              {"evictions", counts.evictions},
              {"recomputations", counts.recomputations},
              {"recomputed_ns", counts.recomputed_ns},
              {"swaps_out", counts.swaps_out},
              {"swaps_in", counts.swaps_in},
              {"bytes_out", counts.bytes_out},
              {"bytes_in", counts.bytes_in},
              {"stalls", counts.stalls},
              {"stall_ns", counts.stall_ns},
              {"runs", replayed.runs},
              {"origin", replayed.origin},
              {"took_ms", took_ms}});
  return row;
}

const Table kReplayTable{.rows = "/results",
                         .columns = {{"NET", "/net"},
                                     {"BUDGET", "/budget_bytes", Format::kBytes},
                                     {"POLICY", "/policy"},
                                     {"KIND", "/kind"},
                                     {"OVERHEAD", "/overhead", Format::kNumber},
                                     {"PEAK", "/peak_bytes", Format::kBytes},
                                     {"EVICTED", "/evictions", Format::kNumber},
                                     {"RECOMPUTED", "/recomputations", Format::kNumber},
                                     {"SWAPPED OUT", "/bytes_out", Format::kBytes},
                                     {"SWAPPED IN", "/bytes_in", Format::kBytes},
                                     {"STALLS", "/stalls", Format::kNumber},
                                     {"TOOK ms", "/took_ms", Format::kNumber}}};

Result<swap::Replayed> replay_one(const swap::Graph& graph, const std::string& policy,
                                  const swap::ReplaySettings& settings) {
  if (policy == swap::optimum_info().name) return swap::replay_optimum(graph, settings.limits);
  return swap::replay(graph, policy, settings);
}

Status replay_budget(const ReplayCommand& command, const swap::Graph& graph,
                     const swap::Baseline& base, int64_t budget, ordered_json& rows) {
  auto settings = command.settings;
  settings.limits.budget_bytes = budget;
  settings.limits.link = {command.gb_per_s, static_cast<int64_t>(command.latency_us * 1000)};
  for (const auto& policy : command.policies) {
    const auto start = std::chrono::steady_clock::now();
    const auto replayed = replay_one(graph, policy, settings);
    if (!replayed) return tl::unexpected(replayed.error());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    rows.push_back(row_of(graph, base, *replayed, budget, took.count()));
  }
  return {};
}

// For people: what was refused, or only reckoned, has no figures of a replay.
void hide_unplayed(ordered_json& rows) {
  for (auto& row : rows)
    if (row["peak_bytes"] == 0)
      for (const char* figure :
           {"peak_bytes", "evictions", "recomputations", "bytes_out", "bytes_in", "stalls"})
        row[figure] = nullptr;
}

int replay(const Context& context, ReplayCommand command) {
  if (!command.tiers.empty()) {
    const auto link = link_of_tier(command.tiers, command.tier);
    if (!link) return print_error(context.output, link.error());
    command.gb_per_s = link->gb_per_s;
    command.latency_us = static_cast<double>(link->latency_ns) / 1000;
  }
  const auto graphs = read_log(command);
  if (!graphs) return print_error(context.output, graphs.error());
  ordered_json rows = ordered_json::array();
  for (const auto& graph : *graphs) {
    const auto base = swap::baseline(graph);
    std::vector<int64_t> budgets;
    for (const double ratio : command.ratios)
      budgets.push_back(static_cast<int64_t>(ratio * static_cast<double>(base.peak_bytes)));
    if (!command.budget.empty()) {
      const auto bytes = parse_bytes(command.budget).value_or(0);
      budgets.push_back(static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)));
    }
    for (const auto budget : budgets)
      if (auto status = replay_budget(command, graph, base, budget, rows); !status)
        return print_error(context.output, status.error());
  }
  if (!context.output.json) hide_unplayed(rows);
  return print(context.output,
               {{"log", command.log},
                {"format", command.format},
                {"bandwidth_gb_per_s", command.gb_per_s},
                {"latency_us", command.latency_us},
                {"results", std::move(rows)}},
               {kReplayTable});
}

std::vector<swap::PolicyInfo> policies() {
  auto infos = swap::policy_infos();
  infos.push_back(swap::optimum_info());
  return infos;
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& info : policies()) names.emplace_back(info.name);
  return names;
}

void add_options(CLI::App& verb, ReplayCommand& command) {
  verb.add_option("log", command.log, "the recorded step")->type_name("FILE")->required();
  verb.add_option("--format", command.format, "what kind of log: dtr|operators|step")
      ->check(CLI::IsMember({"dtr", "operators", "step"}))
      ->type_name("FORMAT")
      ->capture_default_str();
  auto* budget = verb.add_option_group("budget")->require_option(1, 2);
  budget->add_option("--budget-ratio", command.ratios, "share of the peak without a limit")
      ->type_name("SHARE,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(number_between(0.0, 1.0));
  budget->add_option("--budget", command.budget, "device memory, such as 4GiB")
      ->type_name("SIZE")
      ->check([](const std::string& text) {
        const auto bytes = parse_bytes(text);
        return bytes ? std::string() : bytes.error().message;
      });
  verb.add_option("--policy", command.policies, "which ones; 'swap policies' lists them")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->check(CLI::IsMember(policy_names()).description(""))
      ->capture_default_str();
  auto* link =
      verb.add_option("--bandwidth", command.gb_per_s,
                      "of the link to host memory, each way, in 1e9 bytes a second; 0: no swapping")
          ->type_name("GB/s")
          ->check(number_between(0.0, 1e6))
          ->check([](const std::string& text) {
            const double said = std::strtod(text.c_str(), nullptr);
            return said == 0 || said >= kLeastGbPerS
                       ? std::string()
                       : fmt::format("0 or at least {}", kLeastGbPerS);
          })
          ->capture_default_str();
  verb.add_option("--latency", command.latency_us, "of each copy, in microseconds")
      ->type_name("US")
      ->needs(link)
      ->check(number_between(0.0, 1e9))
      ->capture_default_str();
  auto* tiers = verb.add_option("--tiers", command.tiers,
                                "what 'tiertool tier show -j' wrote: the link is to its fastest "
                                "tier below the first")
                    ->type_name("FILE.json")
                    ->check([](const std::string& file) {
                      return file.empty() ? "a file is needed" : std::string();
                    })
                    ->excludes(link);
  verb.add_option("--tier", command.tier, "of the file of tiers, this one")
      ->type_name("NAME")
      ->needs(tiers);
  verb.add_option("--thrash-limit", command.settings.limits.thrash_limit,
                  "a replay that exceeds this overhead by recomputing has failed")
      ->type_name("FACTOR")
      ->check(number_between(1.0, 1e6))
      ->capture_default_str();
  verb.add_option("--net", command.net, "of a table of operators, only this one")
      ->type_name("NAME");
  verb.add_option("--seed", command.settings.seed, "of everything random")
      ->type_name("N")
      ->check(whole_number().description(""))
      ->capture_default_str();
}

int list_policies(const Context& context) {
  ordered_json rows = ordered_json::array();
  for (const auto& info : policies())
    rows.push_back({{"policy", info.name}, {"kind", info.kind}, {"says", info.says}});
  return print(
      context.output, {{"policies", std::move(rows)}},
      {{.rows = "/policies",
        .columns = {{"POLICY", "/policy"}, {"KIND", "/kind"}, {"WHAT IT DOES", "/says"}}}});
}

}  // namespace

void add_swap(CLI::App& app, Context& context) {
  auto* swap = app.add_subcommand("swap", "tensors that leave device memory while a model trains");
  swap->require_subcommand(1);
  auto* verb = swap->add_subcommand("replay", "a recorded step under a memory budget");
  auto command = std::make_shared<ReplayCommand>();
  add_options(*verb, *command);
  verb->callback([&context, command, verb] {
    if (verb->count("--net") > 0 && command->format != "operators")
      throw CLI::ValidationError("--net", "is of a table of operators: say --format operators");
    context.command = [&context, command] { return replay(context, *command); };
  });
  add_swap_record(*swap, context);
  swap->add_subcommand("policies", "what can decide which tensors leave")->callback([&context] {
    context.command = [&context] { return list_policies(context); };
  });
}

}  // namespace tierpilot::tiertool
