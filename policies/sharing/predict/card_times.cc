#include "policies/sharing/predict/card_times.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/table/cell.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/gpu_kinds.h"

namespace tierpilot::sharing {
namespace {

struct Scaling {
  const char* name;
  // ln(time on `to` / time on `from`)
  double (*ln)(const GpuFeatures& from, const GpuFeatures& to);
};

double by_operations(const GpuFeatures& from, const GpuFeatures& to) {
  return std::log(from.float32_ops_per_s() / to.float32_ops_per_s());
}
double by_memory(const GpuFeatures& from, const GpuFeatures& to) {
  return std::log(from.memory_bytes_per_s() / to.memory_bytes_per_s());
}

// A training does both in turn.
const Scaling kScalings[]{
    {"default",
     [](const GpuFeatures& from, const GpuFeatures& to) {
       return (by_operations(from, to) + by_memory(from, to)) / 2;
     }},
    {"as on others", [](const GpuFeatures&, const GpuFeatures&) { return 0.0; }},
    {"operations", by_operations},
    {"memory", by_memory}};

struct TimeOfCard {
  std::string card, job;
  double seconds = 0;
  double power_w = 0;
};

struct Bounds {
  const char* unit;
  double least, most;
};
constexpr Bounds kSeconds{"seconds", 1e-6, 1e8}, kStepsPerSecond{"steps a second", 1e-8, 1e6},
    kWatts{"watts", 1, 1e5}, kGpus{"GPUs", 1, 1e6};

Result<double> figure_of(const CsvTable& table, const char* column, const Bounds& bounds) {
  const auto text = table.cell(table.find({column}));
  const auto figure = parse_number(text);
  if (figure && *figure >= bounds.least && *figure <= bounds.most) return *figure;
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: {} is {}, which is no number of {} from {:g} to {:g}", table.place(),
                          column, shown(text), bounds.unit, bounds.least, bounds.most));
}

Result<TimeOfCard> epoch_of(const CsvTable& table, TimeOfCard row) {
  const auto text = [&](const char* name) { return table.cell(table.find({name})); };
  row.job = fmt::format("{}, {}, {}, {}", text("dataset"), text("network"), text("batch_size"),
                        text("optimizer"));
  const auto seconds = figure_of(table, "epoch_s", kSeconds);
  if (!seconds) return tl::unexpected(seconds.error());
  row.seconds = *seconds;
  if (!table.find({"power_limit_w"})) return row;
  const auto power_w = figure_of(table, "power_limit_w", kWatts);
  if (!power_w) return tl::unexpected(power_w.error());
  row.power_w = *power_w;
  return row;
}

// Without a job: on several GPUs.
Result<TimeOfCard> step_of(const CsvTable& table, TimeOfCard row) {
  const auto text = [&](const char* name) { return table.cell(table.find({name})); };
  const auto gpus = figure_of(table, "gpus", kGpus);
  if (!gpus) return tl::unexpected(gpus.error());
  if (*gpus != 1) return row;
  const auto steps_s = figure_of(table, "steps_s", kStepsPerSecond);
  if (!steps_s) return tl::unexpected(steps_s.error());
  row.job = fmt::format("{}, {}", text("model"), text("batch"));
  row.seconds = 1 / *steps_s;
  return row;
}

Result<TimeOfCard> row_of(const CsvTable& table) {
  TimeOfCard row{.card = std::string(table.cell(table.find({"gpu"})))};
  if (!published_gpu(row.card))
    return fail(ErrorCode::kNotFound, fmt::format("{}: of the card {} nothing is published here",
                                                  table.place(), shown(row.card)));
  return table.find({"epoch_s"}) ? epoch_of(table, std::move(row)) : step_of(table, std::move(row));
}

struct Sums {
  double squares = 0;
  size_t count = 0;
  double error() const { return std::sqrt(squares / static_cast<double>(count)); }
};

// Of each card that is left out: how far what the others say of it is off.
std::map<std::string, Sums> errors(const CardTimes& times, const Scaling& scaling) {
  std::map<std::string, Sums> by_card;
  for (const auto& [job, on] : times.by_job)
    for (const auto& [card, seconds] : on) {
      if (on.size() < 2) continue;
      double said = 0;
      for (const auto& [other, its] : on)
        if (other != card)
          said += std::log(its) + scaling.ln(*published_gpu(other), *published_gpu(card));
      said /= static_cast<double>(on.size() - 1);
      by_card[card].squares += std::pow(said - std::log(seconds), 2);
      ++by_card[card].count;
    }
  return by_card;
}

Scored score(const CardTimes& times, const Scaling& scaling) {
  Scored scored{"card", scaling.name, 0, 0, {}, 0};
  Sums all;
  for (const auto& [card, sums] : errors(times, scaling)) {
    all.squares += sums.squares;
    all.count += sums.count;
    if (!scored.worst_group.empty() && sums.error() <= scored.worst_error) continue;
    scored.worst_group = card;
    scored.worst_error = sums.error();
  }
  scored.tested = all.count;
  scored.error = all.count > 0 ? all.error() : 0;
  return scored;
}

}  // namespace

bool is_card_times(const CsvTable& table) {
  const bool alone = table.find({"model"}) && table.find({"gpus"}) && table.find({"steps_s"});
  const bool epochs = table.find({"network"}) && table.find({"epoch_s"});
  return table.find({"gpu"}) && (alone || epochs);
}

Result<CardTimes> read_card_times(CsvTable& table) {
  CardTimes times;
  std::map<std::pair<std::string, std::string>, double> most_w;
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    const auto row = row_of(table);
    if (!row) {
      if (times.skipped++ == 0) times.first_skipped = row.error().message;
      continue;
    }
    if (row->job.empty()) continue;
    auto& most = most_w[{row->job, row->card}];
    if (row->power_w < most) continue;
    most = row->power_w;
    times.by_job[row->job][row->card] = row->seconds;
  }
  if (times.by_job.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no time of a job{}", table.place(),
                            times.skipped > 0 ? "; " + times.first_skipped : ""));
  return times;
}

nlohmann::ordered_json study_card_times(const CardTimes& times) {
  StudyResult result;
  for (const auto& scaling : kScalings) result.scores.push_back(score(times, scaling));
  if (result.scores.front().tested == 0) return nlohmann::ordered_json::array();
  const Study study{.target = "time on a card never seen, by its features and times on others",
                    .measure = Measure::kRootMeanSquareLn,
                    .rows = std::vector<Row>(result.scores.front().tested)};
  return nlohmann::ordered_json::array({study_json(study, result)});
}

}  // namespace tierpilot::sharing
