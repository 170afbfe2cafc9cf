#include "policies/sharing/predict/jobs/gpu_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/statistics.h"
#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/mebibyte.h"

namespace tierpilot::sharing {
namespace {

constexpr double kLeastMs = 1e-4;
constexpr double kMostLog = 30;  // of milliseconds and MiB: no machine has more
// Columns are milliseconds at a GPU's most, so that a weight of one is a sane one.
constexpr CostSettings kTimeSettings{.start = 1, .penalty = 3e-4};
constexpr CostSettings kMemorySettings{.penalty = 3e-4};
constexpr double kTotalsPenalty = 0.1;
// Where a driver tells nothing of a kind: one of the middle.
constexpr double kUsualOps = 1e13, kUsualBytes = 5e11;
constexpr double kLaunchMs = 0.01;
constexpr double kMostHostTimes = 4;  // faster or slower: more is no measurement
// Drivers tell whole percents of use: of less than two the time is off by a quarter and more.
constexpr double kToldMilli = 20;

double known(double figure, double usual) {
  return figure > 0 ? figure : usual;
}

// As many of bytes of memory as of operations: with 1.43 times the bytes per second and the same
// operations the same trainings took 5 % less of an H200 than of an H100.
double moved_bytes_per_s(double ops_per_s, double bytes_per_s) {
  return std::sqrt(bytes_per_s * ops_per_s * (kUsualBytes / kUsualOps));
}

// Sums of costs see the columns of work and the calls of recurrent layers. What they leave is
// corrected by totals of the model, and by trees, which see all; what is left, where a model is
// near to one that was measured, by what that one's was.
std::unique_ptr<Regressor> make_time_regressor() {
  const size_t parts = work_parts().size(), figures = figures_row({}).size();
  std::vector<size_t> work(parts), totals(kTotalFigures);
  std::iota(work.begin(), work.end(), 0);
  work.push_back(parts + figures);
  std::iota(totals.begin(), totals.end(), parts);
  const auto costs = [&] { return make_on_columns(work, make_cost_sum(kTimeSettings)); };
  std::vector<std::unique_ptr<Regressor>> members;
  members.push_back(make_stacked(costs(), make_on_columns(totals, make_ridge(kTotalsPenalty))));
  members.push_back(make_stacked(
      costs(), make_boosted_trees({.trees = 100, .depth = 3, .rate = 0.05, .least_rows = 20})));
  return make_stacked(make_average(std::move(members)), make_on_columns(totals, make_kriging({})));
}

std::unique_ptr<Regressor> make_gpu_memory_regressor() {
  std::vector<size_t> costs(gpu_memory_row({}, {}).size() - kTotalFigures), totals(kTotalFigures);
  std::iota(costs.begin(), costs.end(), 0);
  std::iota(totals.begin(), totals.end(), costs.size());
  return make_stacked(make_on_columns(costs, make_cost_sum(kMemorySettings)),
                      make_on_columns(totals, make_kriging({})));
}

uint64_t count_of(const ModelCard& card, std::initializer_list<const char*> kinds) {
  uint64_t count = 0;
  for (const char* kind : kinds)
    if (const auto found = card.operators.find(kind); found != card.operators.end())
      count += found->second.count;
  return count;
}

double log_ms(double seconds) {
  return std::log(std::max(1e3 * seconds, kLeastMs));
}

using Rows = std::vector<MeasuredTraining>;

double bounded_speed(double times) {
  return times > 0 ? std::clamp(times, 1 / kMostHostTimes, kMostHostTimes) : 1;
}

void know_hosts(GpuModel& model, const Rows& rows) {
  std::vector<double> calibrations_s, operations;
  for (const auto& row : rows) {
    if (row.calibration_s > 0) calibrations_s.push_back(row.calibration_s);
    if (row.calibration_s > 0 && row.host_ops_per_s > 0)
      operations.push_back(row.calibration_s * row.host_ops_per_s);
  }
  model.calibration_s = upper_median(std::move(calibrations_s));
  if (!operations.empty())
    model.host_ops_per_s = upper_median(std::move(operations)) / model.calibration_s;
}

// The regressors alone.
GpuModel fitted(const Rows& rows) {
  GpuModel model;
  know_hosts(model, rows);
  std::vector<Row> work, told, resident;
  std::vector<double> busy, step, memory;
  const auto tells = [](const MeasuredTraining& row) {
    return row.traced || row.utilisation_milli >= kToldMilli;
  };
  const bool none_tells = std::none_of(rows.begin(), rows.end(), tells);
  for (const auto& row : rows) {
    work.push_back(gpu_row(row.card, *row.gpu, host_speed(model, row)));
    step.push_back(log_ms(row.step_s));
    if (none_tells || tells(row)) {
      told.push_back(gpu_row(row.card, *row.gpu));
      busy.push_back(log_ms(row.busy_s));
    }
    resident.push_back(gpu_memory_row(row.card, *row.gpu));
    memory.push_back(std::log1p(row.memory_bytes / kMib));
  }
  model.busy = make_time_regressor();
  model.busy->fit(told, busy);
  model.step = make_time_regressor();
  model.step->fit(work, step);
  model.memory = make_gpu_memory_regressor();
  model.memory->fit(resident, memory);
  return model;
}

// Groups are left out in turn.
Margins margins_over(const Rows& rows, const std::vector<std::string>& groups) {
  const auto folds = folds_of(groups);
  NeededMargins needed;
  for (size_t fold = 0; fold < kMostMarginFolds; ++fold) {
    Rows train, test;
    std::vector<std::string> tested;
    for (size_t i = 0; i < rows.size(); ++i) {
      (folds[i] == fold ? test : train).push_back(rows[i]);
      if (folds[i] == fold) tested.push_back(groups[i]);
    }
    if (train.empty() || test.empty()) continue;
    const auto model = fitted(train);
    for (size_t i = 0; i < test.size(); ++i) {
      const auto said =
          gpu_use(model, test[i].card, *test[i].gpu, {.host = host_speed(model, test[i])});
      needed.add(tested[i], {said.milli(), said.step_s, said.memory_bytes}, test[i]);
    }
  }
  return needed.margins();
}

struct Figure {
  const char* name;
  double farther;  // times beyond those that were measured
  double (*of)(const GpuFeatures&);
};
const Figure kFigures[]{
    {"float32 operations/s", 1.5, [](const GpuFeatures& gpu) { return gpu.float32_ops_per_s(); }},
    {"bytes/s of memory", 1.5, [](const GpuFeatures& gpu) { return gpu.memory_bytes_per_s(); }},
    {"as its compute capability", 1.15,
     [](const GpuFeatures& gpu) { return gpu.compute_capability; }}};

}  // namespace

bool GpuModel::has_seen(const GpuFeatures& gpu) const {
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const GpuFeatures& kind) { return kind.is_like(gpu); });
}

std::string GpuModel::unlike_why(const GpuFeatures& gpu) const {
  if (has_seen(gpu)) return {};
  const auto named = gpu.name.empty() ? "such a GPU" : fmt::format("the GPU {}", gpu.name);
  if (kinds.size() < 2)
    return fmt::format("{} was not measured, only {}: one kind tells nothing of others", named,
                       kinds.front().name);
  for (const auto& figure : kFigures) {
    const double its = figure.of(gpu);
    double least = INFINITY, most = 0;
    size_t told = 0;
    for (const auto& kind : kinds) {
      if (!(figure.of(kind) > 0)) continue;
      ++told;
      least = std::min(least, figure.of(kind));
      most = std::max(most, figure.of(kind));
    }
    if (!(its > 0))
      return fmt::format("{} was not measured, and its driver does not tell what it has {}", named,
                         figure.name);
    if (told < 2)
      return fmt::format("{} was not measured, and drivers of {} of those that were tell {}", named,
                         told == 1 ? "one" : "none", figure.name);
    if (its < least / figure.farther || its > most * figure.farther)
      return fmt::format("{} has {:.3g} {}, and those that were measured have {:.3g} to {:.3g}",
                         named, its, figure.name, least, most);
  }
  return {};
}

double host_speed(const GpuModel& model, const MeasuredTraining& row) {
  return row.calibration_s > 0 ? bounded_speed(model.calibration_s / row.calibration_s) : 1;
}

Row gpu_row(const ModelCard& card, const GpuFeatures& gpu, double host_speed) {
  const double ops = known(gpu.float32_ops_per_s(), kUsualOps);
  const double bytes = moved_bytes_per_s(ops, known(gpu.memory_bytes_per_s(), kUsualBytes));
  Row row = work_row(card);
  const auto& parts = work_parts();
  for (size_t i = 0; i < row.size(); ++i) switch (parts[i].kind) {
      case WorkKind::kCalls:
        row[i] *= parts[i].unit * kLaunchMs / host_speed;
        break;
      case WorkKind::kOperations:
        row[i] *= parts[i].unit * 1e3 / ops;
        break;
      case WorkKind::kElements:
        row[i] *= parts[i].unit * 1e3 * sizeof(float) / bytes;
        break;
    }
  const auto figures = figures_row(card);
  row.insert(row.end(), figures.begin(), figures.end());
  // A layer that CUDA's library runs is called once, a loop of a program's once in each step of it.
  row.push_back(static_cast<double>(count_of(card, {"Recurrent"})) * kLaunchMs / host_speed);
  return row;
}

// What CUDA takes for itself grows with the GPU, and with the libraries that are loaded for a first
// product and a first convolution. Behind them the card's totals.
Row gpu_memory_row(const ModelCard& card, const GpuFeatures& gpu) {
  Row row = memory_row(card);
  row.push_back(1000);
  row.push_back(gpu.cores / 10.0);
  const bool convolves = count_of(card, {"Conv2D", "DepthwiseConv2D", "Conv2DTranspose"}) > 0;
  const bool multiplies = count_of(card, {"MatMul", "Attention", "Recurrent"}) > 0;
  row.push_back(convolves ? 100 : 0);
  row.push_back(convolves || multiplies ? 500 : 0);
  const auto figures = figures_row(card);
  row.insert(row.end(), figures.begin(), figures.begin() + kTotalFigures);
  return row;
}

double GpuUse::milli() const {
  return std::clamp(1000 * busy_s / std::max(iteration_s, 1e-12), 1.0, 1000.0);
}

GpuUse gpu_use(const GpuModel& model, const ModelCard& card, const GpuFeatures& gpu,
               const GpuSpeed& speed) {
  const auto seconds = [&](const Regressor& regressor, const Row& row) {
    const double log = regressor.predict(row);
    // The most, too, of no number.
    return std::exp(log < kMostLog ? log : kMostLog) / 1e3 / speed.gpu;
  };
  GpuUse use{.busy_s = seconds(*model.busy, gpu_row(card, gpu))};
  const auto step_s = seconds(*model.step, gpu_row(card, gpu, bounded_speed(speed.host)));
  use.step_s = std::max(step_s, use.busy_s);
  use.iteration_s = iteration_s(use.step_s, card);
  const double log_mib = model.memory->predict(gpu_memory_row(card, gpu));
  use.memory_bytes =
      kMib * std::expm1(std::clamp(log_mib < kMostLog ? log_mib : kMostLog, 0.0, kMostLog));
  return use;
}

GpuModel fit_gpu_model(const Rows& rows) {
  auto model = fitted(rows);
  std::vector<std::string> architectures, kinds;
  for (const auto& row : rows) {
    if (!model.has_seen(*row.gpu)) model.kinds.push_back(*row.gpu);
    architectures.push_back(row.architecture);
    const auto kind = std::find_if(model.kinds.begin(), model.kinds.end(),
                                   [&](const GpuFeatures& each) { return each.is_like(*row.gpu); });
    kinds.push_back(std::to_string(kind - model.kinds.begin()));  // two may have one name
    model.cards.add(row.card);
  }
  model.architectures = {architectures.begin(), architectures.end()};
  model.margins =
      larger(least_margins(model.architectures.size()), margins_over(rows, architectures));
  model.unseen_margins =
      model.kinds.size() < 2 ? model.margins : larger(model.margins, margins_over(rows, kinds));
  return model;
}

}  // namespace tierpilot::sharing
