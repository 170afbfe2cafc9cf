#include "tests/bench/placement/summary.h"
#include "tests/bench/placement/program_parts.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/statistics.h"

namespace tierpilot::bench {
namespace {

using nlohmann::ordered_json;

constexpr double kSteadyShare = 0.4;  // the last part of a phase
constexpr double kArrived = 0.9;      // of the hot set in fast memory: it has followed

using Values = std::vector<double>;

double mean(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

ordered_json spread_of(Values values, const std::string& why_none) {
  if (values.empty()) return {{"median", nullptr}, {"reason", "unavailable: " + why_none}};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"median", median(values)}, {"min", *least}, {"max", *most}};
}

// Of the ticks in the last part of each phase.
bool is_steady(const RowRun& run, const Tick& tick) {
  const double middle_s = run.changed_at_s;
  const double begin_s = tick.at_s > middle_s ? middle_s : 0;
  const double end_s = tick.at_s > middle_s ? run.seconds : middle_s;
  return tick.at_s > end_s - kSteadyShare * (end_s - begin_s);
}

// The median over ticks: on a busy host some are lost to others.
double steady_rate(const RowRun& run) {
  Values rates;
  for (const auto& tick : run.ticks)
    if (is_steady(run, tick)) rates.push_back(tick.operations_per_s);
  return median(std::move(rates));
}

double whole_rate(const RowRun& run) {
  return run.operations / run.seconds;
}

std::optional<double> steady_mean(const RowRun& run,
                                  const std::function<std::optional<double>(const Placed&)>& of) {
  Values values;
  for (const auto& tick : run.ticks)
    if (const auto value = of(tick.placed); value && is_steady(run, tick)) values.push_back(*value);
  if (values.empty()) return {};
  return mean(values);
}

// Seconds from `from_s` until nine tenths of the hot set are in fast memory.
std::optional<double> arrival_s(const RowRun& run, double from_s) {
  for (const auto& tick : run.ticks)
    if (tick.at_s > from_s && tick.placed.recall.value_or(0) >= kArrived) return tick.at_s - from_s;
  return {};
}

// All runs of one row, with the oracle of the same round.
struct Runs {
  std::vector<std::pair<const RowRun*, const RowRun*>> pairs;
  std::string trouble;

  ordered_json over(const std::function<std::optional<double>(const RowRun&)>& of,
                    const std::string& why_none = "not of this row") const {
    Values values;
    for (const auto& [run, oracle] : pairs)
      if (const auto value = of(*run)) values.push_back(*value);
    return spread_of(std::move(values), pairs.empty() ? trouble : why_none);
  }
  ordered_json to_oracle(const std::function<double(const RowRun&)>& rate) const {
    Values values;
    for (const auto& [run, oracle] : pairs)
      if (oracle && rate(*oracle) > 0) values.push_back(rate(*run) / rate(*oracle));
    return spread_of(std::move(values), pairs.empty() ? trouble : "no oracle beside it");
  }
};

void add_placed(ordered_json& row, const Runs& runs) {
  const auto placed = [&](auto member) {
    return runs.over(
        [member](const RowRun& run) {
          return steady_mean(
              run, [member](const Placed& at) -> std::optional<double> { return at.*member; });
        },
        "all pages are used alike: there is no hot set");
  };
  row["fast_access_share"] = placed(&Placed::fast_access_share);
  row["hot_set_recall"] = placed(&Placed::recall);
  row["hot_set_precision"] = placed(&Placed::precision);
  const auto arrival = [&](bool after_change) {
    return runs.over(
        [after_change](const RowRun& run) -> std::optional<double> {
          if (after_change && run.changed_at_s == 0) return {};
          return arrival_s(run, after_change ? run.changed_at_s : 0);
        },
        "nine tenths of the hot set did not come to fast memory");
  };
  row["hot_set_arrived_s"] = arrival(false);
  row["hot_set_followed_s"] = arrival(true);
}

void add_costs(ordered_json& row, const Runs& runs) {
  row["moved_bytes"] = runs.over([](const RowRun& run) {
    return static_cast<double>(run.kernel.migrated_pages * kPageBytes);
  });
  // Of one core: the loop, kdamond, kswapd, kcompactd.
  row["helper_cpu_share"] = runs.over([](const RowRun& run) {
    return (run.kernel.helper_cpu_s + static_cast<double>(run.loop.cpu_ns) / 1e9) / run.seconds;
  });
  // Hint faults and the scans for them are made in the program's own time.
  row["program_system_share"] =
      runs.over([](const RowRun& run) { return run.program_cpu.system_s / run.seconds; });
  row["wrong_answers"] =
      runs.over([](const RowRun& run) { return static_cast<double>(run.wrong_answers); });
}

void add_loop(ordered_json& row, const Runs& runs) {
  const auto counter = [&](auto of) {
    return runs.over([of](const RowRun& run) -> std::optional<double> {
      if (run.tracker.empty()) return {};
      return static_cast<double>(of(run));
    });
  };
  const auto cpu_share = [](int64_t cpu_ns, double seconds) {
    return static_cast<double>(cpu_ns) / 1e9 / seconds;
  };
  row["loop"] = {
      {"cpu_share", counter([&](const RowRun& r) { return cpu_share(r.loop.cpu_ns, r.seconds); })},
      {"tracker_cpu_share",
       counter([&](const RowRun& r) { return cpu_share(r.loop.tracker_cpu_ns, r.seconds); })},
      {"rounds", counter([](const RowRun& r) { return r.loop.rounds; })},
      {"slowed_rounds", counter([](const RowRun& r) { return r.loop.slowed_rounds; })},
      {"promoted_bytes", counter([](const RowRun& r) { return r.loop.promoted_bytes; })},
      {"failed_pages", counter([](const RowRun& r) {
         uint64_t pages = 0;
         for (const auto& [err, count] : r.loop.failed_pages) pages += count;
         return pages;
       })},
      {"demoted_bytes", counter([](const RowRun& r) { return r.loop.demoted_bytes; })}};
}

ordered_json row_of(RowKind kind, const Runs& runs) {
  ordered_json row{{"row", row_name(kind)}, {"runs", runs.pairs.size()}};
  if (!runs.trouble.empty()) row["trouble"] = runs.trouble;
  row["steady_to_oracle"] = runs.to_oracle(steady_rate);
  row["whole_to_oracle"] = runs.to_oracle(whole_rate);
  row["operations_per_s"] = runs.over(whole_rate);
  add_placed(row, runs);
  add_costs(row, runs);
  if (kind == RowKind::kTierpilot) add_loop(row, runs);
  return row;
}

const RowRun* oracle_of(const ProgramRound& round) {
  for (const auto& [kind, run] : round.rows)
    if (kind == RowKind::kAllFast && run) return &*run;
  return nullptr;
}

}  // namespace

ordered_json summarise(const std::vector<ProgramRound>& rounds) {
  std::map<ProgramKind, std::map<RowKind, Runs>> programs;
  for (const auto& round : rounds)
    for (const auto& [kind, run] : round.rows) {
      auto& runs = programs[round.program][kind];
      if (run)
        runs.pairs.emplace_back(&*run, oracle_of(round));
      else
        runs.trouble = run.error().message;
    }
  ordered_json value{{"schema", 1}, {"programs", ordered_json::array()}};
  for (const auto& [program, rows] : programs) {
    ordered_json entry{{"program", program_name(program)}, {"rows", ordered_json::array()}};
    for (const auto& [kind, runs] : rows) entry["rows"].push_back(row_of(kind, runs));
    value["programs"].push_back(std::move(entry));
  }
  return value;
}

ordered_json timelines(const std::vector<ProgramRound>& rounds) {
  ordered_json all = ordered_json::array();
  for (const auto& round : rounds)
    for (const auto& [kind, run] : round.rows) {
      if (!run) continue;
      ordered_json ticks = ordered_json::array();
      for (const auto& tick : run->ticks)
        ticks.push_back(
            {{"at_s", tick.at_s},
             {"operations_per_s", tick.operations_per_s},
             {"fast_share", tick.placed.fast_share},
             {"fast_access_share", tick.placed.fast_access_share},
             {"recall", tick.placed.recall ? ordered_json(*tick.placed.recall) : ordered_json()}});
      all.push_back({{"program", program_name(round.program)},
                     {"row", row_name(kind)},
                     {"changed_at_s", run->changed_at_s},
                     {"ticks", std::move(ticks)}});
    }
  return all;
}

}  // namespace tierpilot::bench
