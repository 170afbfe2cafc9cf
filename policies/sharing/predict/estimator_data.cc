#include "policies/sharing/predict/estimator_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/table/cell.h"

namespace tierpilot::sharing {
namespace {

constexpr const char* kEstimators[]{"gpumemnet", "faketensor", "horus"};
constexpr size_t kMaxRows = 100'000;
constexpr double kMaxMib = 1e9;

std::optional<size_t> column_of(const CsvTable& table, const char* estimator) {
  const std::string name = fmt::format("{}_mib", estimator);
  return table.find({name});
}

// Says what one estimator said.
class AsSaid final : public Regressor {
 public:
  explicit AsSaid(size_t column) : column_(column) {}
  void fit(const std::vector<Row>&, const std::vector<double>&) override {}
  double predict(const Row& row) const override { return row[column_]; }

 private:
  const size_t column_;
};

double mib_in(const CsvTable& table, std::optional<size_t> column) {
  const double value = parse_number(table.cell(column)).value_or(0);
  return value > 0 && value <= kMaxMib ? value : 0;
}

}  // namespace

bool is_estimator_table(const CsvTable& table) {
  return table.find({"model"}) && table.find({"actual_mib"}) &&
         std::any_of(std::begin(kEstimators), std::end(kEstimators),
                     [&](const char* name) { return column_of(table, name).has_value(); });
}

Result<EstimatorData> read_estimators(CsvTable& table) {
  EstimatorData data;
  std::vector<size_t> columns;
  for (const auto* name : kEstimators)
    if (const auto column = column_of(table, name)) {
      data.estimators.emplace_back(name);
      columns.push_back(*column);
    }
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    const double actual = mib_in(table, table.find({"actual_mib"}));
    Row row;
    for (const auto column : columns) row.push_back(std::log1p(mib_in(table, column)));
    const bool whole =
        actual > 0 && std::all_of(row.begin(), row.end(), [](double value) { return value > 0; });
    if (!whole) {
      if (data.skipped++ == 0)
        data.first_skipped = fmt::format("{}: a figure is missing", table.place());
      continue;
    }
    if (data.rows.size() == kMaxRows)
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: more than {} rows", table.place(), kMaxRows));
    row.push_back(std::log1p(
        std::clamp(parse_number(table.cell(table.find({"batch"}))).value_or(0), 0.0, 1e9)));
    data.rows.push_back(std::move(row));
    data.actual_mib.push_back(actual);
    data.models.emplace_back(table.cell(table.find({"model"})));
  }
  if (data.rows.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: no row with all figures", table.place()));
  return data;
}

Study estimator_study(const EstimatorData& data, const EstimatorData* train) {
  Study study{.target = "memory of networks", .measure = Measure::kRootMeanSquareLog};
  study.rows = data.rows;
  for (const double mib : data.actual_mib) study.targets.push_back(std::log1p(mib));
  study.calibration = {{"model", data.models}};
  if (train) {
    Fold fold{"all", {}, std::vector<size_t>(data.rows.size())};
    std::iota(fold.test.begin(), fold.test.end(), 0);
    for (size_t i = 0; i < train->rows.size(); ++i) {
      fold.train.push_back(study.rows.size());
      study.rows.push_back(train->rows[i]);
      study.targets.push_back(std::log1p(train->actual_mib[i]));
      study.calibration.front().groups.push_back(train->models[i]);
    }
    study.splits.push_back({"files", {fold}});
  } else if (auto split = leave_each_out("model", data.models); !split.folds.empty()) {
    study.splits.push_back(std::move(split));
  }
  study.contenders = {{"default", [] { return make_ridge(0.01); }},
                      {"constant", [] { return make_constant(); }}};
  for (size_t i = 0; i < data.estimators.size(); ++i)
    study.contenders.push_back({data.estimators[i], [i] { return std::make_unique<AsSaid>(i); }});
  return study;
}

}  // namespace tierpilot::sharing
