// tierctl unit rates: what a fleet's record of failures says of each unit, and how far to trust it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "policies/gang/rates/history_reader.h"
#include "policies/gang/rates/rate_trial.h"
#include "tools/lab/command.h"
#include "tools/output/arguments.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

constexpr size_t kShownUnits = 20;
constexpr size_t kMaxKinds = 16;

struct RateOptions {
  std::string history;
  std::string installed;
  double train = 0.5;
  std::optional<uint32_t> fleet;
};

ordered_json row_json(const gang::TrialRow& row) {
  return {{"name", row.name}, {"auc", row.auc}, {"lift", row.lift}};
}

ordered_json trial_json(const gang::RateTrial& trial) {
  ordered_json rows = ordered_json::array({row_json(trial.model)});
  for (const auto& simple : trial.simple) rows.push_back(row_json(simple));
  return {{"split_day", trial.split_day},
          {"units", trial.units},
          {"units_failed", trial.units_failed},
          {"failures_before", trial.failures_before},
          {"failures_after", trial.failures_after},
          {"failures_foretold", trial.foretold},
          {"auc", trial.model.auc},
          {"lift", trial.model.lift},
          {"coverage", trial.coverage},
          {"coverage_whole_counts", trial.coverage_whole},
          {"predictors", rows}};
}

ordered_json evidence_json(const gang::FleetRates& fleet) {
  ordered_json rows = ordered_json::array();
  for (const auto& factor : fleet.evidence)
    rows.push_back(
        {{"factor", factor.name}, {"matters", factor.matters}, {"spread", factor.spread}});
  return rows;
}

// Of each unit and kind: how many failures, and the estimated rate.
struct Counts {
  uint64_t all = 0;
  std::map<std::string, ordered_json> by_kind;
};

// The most frequent ones first.
std::vector<uint32_t> kinds_of(const gang::FailureHistory& history) {
  std::vector<uint64_t> counts(history.kinds.size());
  for (const auto& failure : history.failures) ++counts[failure.kind];
  std::vector<uint32_t> kinds(counts.size());
  std::iota(kinds.begin(), kinds.end(), 0U);
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
  if (kinds.size() > kMaxKinds) kinds.resize(kMaxKinds);
  return kinds;
}

std::vector<Counts> counts_of(const gang::FailureHistory& history, gang::RateChoice choice,
                              double now, double horizon_days) {
  std::vector<Counts> counts(history.units.size());
  for (const auto& failure : history.failures) ++counts[failure.unit].all;
  choice.weights = {1};  // the simple rates know no kinds
  for (const uint32_t kind : kinds_of(history)) {
    const std::string& name = history.kinds[kind];
    choice.settings.kind = static_cast<int32_t>(kind);
    for (const auto& rate : gang::fleet_rates(history, choice, now, horizon_days).rates)
      counts[rate.unit].by_kind[name] = {{"failures", 0}, {"rate_per_day", rate.per_day}};
    for (const auto& failure : history.failures) {
      auto& of_unit = counts[failure.unit].by_kind;
      if (failure.kind == kind && of_unit.contains(name))
        of_unit[name]["failures"] = of_unit[name]["failures"].get<uint64_t>() + 1;
    }
  }
  return counts;
}

// Worst first.
ordered_json units_json(const gang::FailureHistory& history, gang::FleetRates fleet,
                        const std::vector<Counts>& counts, double spread) {
  std::stable_sort(fleet.rates.begin(), fleet.rates.end(),
                   [](const auto& a, const auto& b) { return a.per_day > b.per_day; });
  ordered_json rows = ordered_json::array();
  for (const auto& rate : fleet.rates) {
    const auto interval =
        gang::gamma_interval(rate.per_day, 1 / (1 / rate.shape + spread), gang::kIntervalShare);
    rows.push_back({{"unit", history.units[rate.unit]},
                    {"failures", counts[rate.unit].all},
                    {"by_kind", counts[rate.unit].by_kind},
                    {"rate_per_day", rate.per_day},
                    {"low", interval.low},
                    {"high", interval.high}});
  }
  return rows;
}

ordered_json rates_json(const gang::FailureHistory& history, const gang::RateTrial& trial) {
  const double horizon_days = history.end_day - trial.split_day;
  const double now = std::nextafter(history.end_day, history.begin_day);
  const auto choice = gang::choose_rates(history, now);
  const auto fleet = gang::fleet_rates(history, choice, now, horizon_days);
  return {{"days", history.end_day - history.begin_day},
          {"units_known", history.units.size()},
          {"failures", history.failures.size()},
          {"failures_out_of_service", history.outside_service},
          {"overlapping_services", history.overlapping_services},
          {"whole_fleet", history.whole_fleet},
          {"trial", trial_json(trial)},
          {"half_life_days", choice.settings.half_life_days},
          {"cluster_size", fleet.cluster_size},
          {"factors", evidence_json(fleet)},
          {"units", units_json(history, fleet, counts_of(history, choice, now, horizon_days),
                               choice.spread)}};
}

void print_tables(const Context& context, ordered_json value) {
  const auto all = value["units"].size();
  if (all > kShownUnits)
    value["units"].erase(value["units"].begin() + kShownUnits, value["units"].end());
  const auto& trial = value["trial"];
  *context.output.out << format_table(
      value, {.title = fmt::format(
                  "Learnt until day {:.1f} ({} failures), judged on the rest ({} "
                  "failures, on {} of {} units)",
                  trial["split_day"].get<double>(), trial["failures_before"].get<uint64_t>(),
                  trial["failures_after"].get<uint64_t>(), trial["units_failed"].get<uint64_t>(),
                  trial["units"].get<uint64_t>()),
              .rows = "/trial/predictors",
              .columns = {{"RATES", "/name"},
                          {"AUC", "/auc", Format::kNumber},
                          {"LIFT OF THE WORST TENTH", "/lift", Format::kNumber}}});
  *context.output.out << fmt::format(
      "\n90 % intervals covered {:.1f} %; {:.1f} failures foretold\n\n",
      100 * trial["coverage"].get<double>(), trial["failures_foretold"].get<double>());
  *context.output.out << format_table(value, {.title = "What matters, from all of the record",
                                              .rows = "/factors",
                                              .columns = {{"FACTOR", "/factor"},
                                                          {"MATTERS", "/matters"},
                                                          {"SPREAD", "/spread", Format::kNumber}}})
                      << '\n'
                      << format_table(
                             value, {.title = fmt::format("Failures a day, the highest of {}", all),
                                     .rows = "/units",
                                     .columns = {{"UNIT", "/unit"},
                                                 {"FAILURES", "/failures", Format::kNumber},
                                                 {"MEAN", "/rate_per_day", Format::kNumber},
                                                 {"LOW", "/low", Format::kNumber},
                                                 {"HIGH", "/high", Format::kNumber}}});
  if (const auto overlapping = value["overlapping_services"].get<uint64_t>(); overlapping > 0)
    *context.output.out << fmt::format(
        "\n{} times in service begin before the unit's last one has ended: these days count once\n",
        overlapping);
  if (!value["whole_fleet"].get<bool>())
    *context.output.out << "\nOnly units with a failure are known: what is said of the others, and "
                           "of the judgement, needs --installed or --fleet\n";
}

int run(const Context& context, const RateOptions& options) {
  const auto history =
      gang::read_failure_history({options.history, options.installed, options.fleet});
  if (!history) return print_error(context.output, history.error());
  const auto trial = gang::try_rates(*history, options.train);
  if (!trial) return print_error(context.output, trial.error());
  const auto value = rates_json(*history, *trial);
  if (context.output.json) return print(context.output, value, {});
  print_tables(context, value);
  return kExitOk;
}

}  // namespace

void add_rates(CLI::App& unit, Context& context) {
  auto* command = unit.add_subcommand("rates", laboratory_help::kUnitRates);
  auto options = std::make_shared<RateOptions>();
  command
      ->add_option("--history", options->history,
                   "failures (CSV): time_days, device, node, kind; further columns are groups")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--installed", options->installed,
                   "times in service (CSV): device, start_day, end_day, node, groups")
      ->type_name("FILE");
  command
      ->add_option("--fleet", options->fleet,
                   "units there are, when the files name only those that failed")
      ->check(CLI::Range(1U, 10'000'000U))
      ->type_name("N");
  command->add_option("--train", options->train, "share of the time that rates are learnt from")
      ->check(number_between(0.05, 0.95))
      ->type_name("SHARE")
      ->capture_default_str();
  command->callback([&context, options] {
    context.command = [&context, options] { return run(context, *options); };
  });
}

}  // namespace tierpilot::lab
