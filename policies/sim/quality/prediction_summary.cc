#include "policies/sim/quality/prediction_summary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/statistics.h"

namespace tierpilot::sim {
namespace {

using Json = nlohmann::ordered_json;

// Of one family, horizon and predictor.
struct Cell {
  std::vector<double> errors;
  double covered = 0, floor = 0;
};

struct Measures {
  double predictions = 0;
  double mean = 0, median = 0, p90 = 0, coverage = 0, floor = 0;
};

Measures measures_of(Cell cell) {
  std::sort(cell.errors.begin(), cell.errors.end());
  const auto count = static_cast<double>(cell.errors.size());
  double sum = 0;
  for (const double error : cell.errors) sum += error;
  return {.predictions = count,
          .mean = sum / count,
          .median = quantile(cell.errors, 0.5),
          .p90 = quantile(cell.errors, 0.9),
          .coverage = cell.covered / count,
          .floor = cell.floor / count};
}

Json measures_json(const Measures& measures) {
  return {{"predictions", static_cast<uint64_t>(measures.predictions)},
          {"mean_error_percent", 100 * measures.mean},
          {"median_error_percent", 100 * measures.median},
          {"p90_error_percent", 100 * measures.p90},
          {"coverage_percent", 100 * measures.coverage},
          {"noise_floor_percent", 100 * measures.floor}};
}

struct Row {
  std::string family;
  size_t horizon;
  size_t predictor;
  Measures measures;
};

std::vector<Row> rows_of(const std::vector<LossCurve>& curves,
                         const std::vector<CurveTrial>& trials) {
  std::map<std::tuple<std::string, size_t, size_t>, Cell> cells;
  for (const auto& trial : trials)
    for (size_t p = 0; p < trial.predictions.size(); ++p)
      for (const auto& prediction : trial.predictions[p]) {
        auto& cell = cells[{curves[trial.curve].family, prediction.horizon, p}];
        cell.errors.push_back(prediction.error);
        cell.covered += prediction.covered;
        cell.floor += trial.noise_floor;
      }
  std::vector<Row> rows;
  for (auto& [key, cell] : cells)
    rows.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), measures_of(std::move(cell))});
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tuple(a.horizon, a.predictor, -a.measures.mean) <
           std::tuple(b.horizon, b.predictor, -b.measures.mean);
  });
  return rows;
}

Json combined_json(const std::vector<Row>& rows, const std::vector<std::string>& predictors) {
  Json combined = Json::array();
  for (size_t horizon = 0; horizon < kReportsAhead.size(); ++horizon)
    for (size_t p = 0; p < predictors.size(); ++p) {
      Measures sum;
      double families = 0;
      for (const auto& row : rows) {
        if (row.horizon != horizon || row.predictor != p) continue;
        ++families;
        const auto& m = row.measures;
        sum = {sum.predictions + m.predictions, sum.mean + m.mean,
               sum.median + m.median,           sum.p90 + m.p90,
               sum.coverage + m.coverage,       sum.floor + m.floor};
      }
      if (families == 0) continue;
      const Measures mean{sum.predictions,    sum.mean / families,     sum.median / families,
                          sum.p90 / families, sum.coverage / families, sum.floor / families};
      Json row{{"horizon", kHorizonNames[horizon]},
               {"predictor", predictors[p]},
               {"families", families}};
      row.update(measures_json(mean));
      combined.push_back(std::move(row));
    }
  return combined;
}

Json curve_json(const LossCurve& curve, const CurveTrial& trial,
                const std::vector<std::string>& predictors) {
  Json value{{"run", curve.run},
             {"family", curve.family},
             {"reports", curve.points.size()},
             {"seen", trial.seen},
             {"noise_floor_percent", 100 * trial.noise_floor}};
  if (!trial.skipped.empty()) value["skipped"] = trial.skipped;
  if (!trial.left_out.empty()) value["left_out"] = trial.left_out;
  auto& predictions = value["predictions"] = Json::array();
  for (size_t p = 0; p < trial.predictions.size(); ++p)
    for (const auto& prediction : trial.predictions[p])
      predictions.push_back({{"horizon", kHorizonNames[prediction.horizon]},
                             {"predictor", predictors[p]},
                             {"loss", prediction.loss},
                             {"low", prediction.low},
                             {"high", prediction.high},
                             {"actual", prediction.actual},
                             {"error_percent", 100 * prediction.error},
                             {"covered", prediction.covered}});
  return value;
}

}  // namespace

Json prediction_json(const std::vector<LossCurve>& curves,
                     const std::vector<std::string>& predictors,
                     const std::vector<CurveTrial>& trials) {
  const auto rows = rows_of(curves, trials);
  Json value{{"combined", combined_json(rows, predictors)},
             {"families", Json::array()},
             {"curves", Json::array()}};
  for (const auto& row : rows) {
    Json each{{"family", row.family},
              {"horizon", kHorizonNames[row.horizon]},
              {"predictor", predictors[row.predictor]}};
    each.update(measures_json(row.measures));
    value["families"].push_back(std::move(each));
  }
  for (const auto& trial : trials)
    value["curves"].push_back(curve_json(curves[trial.curve], trial, predictors));
  return value;
}

}  // namespace tierpilot::sim
