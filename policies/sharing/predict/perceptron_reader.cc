#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/table/cell.h"
#include "policies/sharing/predict/mebibyte.h"
#include "policies/sharing/predict/perceptron_data.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMaxPerceptrons = 200'000;
constexpr size_t kMaxLayers = 1000;
constexpr double kMaxCount = 1e15;
constexpr double kContextMib = 1000;  // about what a program with nothing on a card takes of it

// A usual card, for orders of magnitude: how long a step computes, and how long it is launched.
constexpr double kFlopsPerS = 8e12;
constexpr double kBytesPerS = 4e11;
constexpr double kKernelS = 3e-6;
constexpr double kLaunchS = 8e-6;
constexpr double kLoadedBytesPerS = 3e9;
constexpr double kLoadedSampleS = 1e-6;

struct Shape {
  std::vector<double> widths;
  double batch = 0, parameters = 0, activations = 0;
  double batchnorms = 0, dropouts = 0;
};

double log_of(double value) {
  return std::log(std::max(value, 1.0));
}

std::optional<std::vector<double>> read_widths(std::string_view cell) {
  std::vector<double> widths;
  while (!cell.empty()) {
    const auto word = cell.substr(0, cell.find_first_of(" ;x"));
    cell.remove_prefix(std::min(word.size() + 1, cell.size()));
    if (word.empty()) continue;
    const auto width = parse_number(word);
    if (!width || *width < 1 || *width > 1e9 || widths.size() == kMaxLayers) return std::nullopt;
    widths.push_back(*width);
  }
  if (widths.size() < 2) return std::nullopt;
  return widths;
}

struct Times {
  double compute_s = 0, optimizer_s = 0, launch_s = 0, load_s = 0;
};

Times times_of(const Shape& shape) {
  const auto& widths = shape.widths;
  Times times;
  for (size_t i = 1; i < widths.size(); ++i) {
    const double weights = widths[i] * widths[i - 1];
    const double flops = 6 * weights * shape.batch;  // forward, and twice that backward
    const double bytes = 12 * weights + 24 * widths[i] * shape.batch;
    times.compute_s += std::max(flops / kFlopsPerS, bytes / kBytesPerS) + kKernelS;
  }
  times.optimizer_s = 28 * shape.parameters / kBytesPerS;
  const double layers = static_cast<double>(widths.size() - 1);
  times.launch_s = kLaunchS * (8 + 6 * layers + 3 * shape.batchnorms + 2 * shape.dropouts);
  times.load_s = shape.batch * (4 * widths.front() / kLoadedBytesPerS + kLoadedSampleS);
  return times;
}

Row row_of(const Shape& shape) {
  double widest = 0, neurons = 0, largest = 0;
  for (size_t i = 1; i < shape.widths.size(); ++i) {
    widest = std::max(widest, shape.widths[i]);
    neurons += shape.widths[i];
    largest = std::max(largest, shape.widths[i] * shape.widths[i - 1]);
  }
  const double layers = static_cast<double>(shape.widths.size() - 1);
  const double flops = 6 * shape.parameters * shape.batch;
  const double weight_bytes = 4 * shape.parameters;
  const double kept_bytes = 4 * (shape.activations > 0 ? shape.activations : neurons) * shape.batch;
  const double input_bytes = 4 * shape.widths.front() * shape.batch;
  const Times times = times_of(shape);
  const double busy_s = times.compute_s + times.optimizer_s;
  return {log_of(flops),
          log_of(weight_bytes),
          log_of(kept_bytes),
          log_of(shape.widths.front()),
          log_of(shape.batch),
          layers,
          log_of(largest),
          log_of(widest),
          log_of(neurons),
          log_of(shape.widths.back()),
          shape.batchnorms,
          shape.dropouts,
          log_of(2 * weight_bytes + kept_bytes),
          log_of(input_bytes),
          4 * weight_bytes / kMib,  // with gradients and two moments of an optimizer
          kept_bytes / kMib,
          input_bytes / kMib,
          log_of(flops / layers),
          std::log(busy_s),
          std::log(times.compute_s),
          std::log(times.optimizer_s + 1e-9),
          std::log(busy_s / times.launch_s),
          std::log(busy_s / times.load_s),
          busy_s / (busy_s + times.launch_s + times.load_s),
          busy_s / (std::max(busy_s, times.launch_s) + times.load_s),
          std::log(times.launch_s),
          std::log(times.load_s),
          kContextMib};
}

struct Columns {
  std::optional<size_t> batch, parameters, activations, batchnorms, dropouts, widths, memory,
      utilisation, family, activation;
};

Columns columns_of(const CsvTable& table) {
  return {table.find({"batch"}),          table.find({"parameters"}),
          table.find({"activations"}),    table.find({"batchnorm_layers"}),
          table.find({"dropout_layers"}), table.find({"widths"}),
          table.find({"memory_mib"}),     table.find({"gpu_util"}),
          table.find({"arch"}),           table.find({"activation"})};
}

double count_in(const CsvTable& table, std::optional<size_t> column) {
  const double value = parse_number(table.cell(column)).value_or(0);
  return value >= 0 && value <= kMaxCount ? value : 0;
}

constexpr double kMostMib = 1e9, kMostPercent = 100;

bool is_measured(double value, double most) {
  return value >= 0 && value <= most;
}

// NaN: nothing was.
double measured(const CsvTable& table, std::optional<size_t> column) {
  return parse_number(table.cell(column)).value_or(std::numeric_limits<double>::quiet_NaN());
}

// What of a measurement is none; empty: nothing.
std::string wrong_in(const CsvTable& table, std::optional<size_t> column, double most) {
  const auto cell = table.cell(column);
  if (cell.empty() || is_measured(measured(table, column), most)) return {};
  return fmt::format("its {} is {}, which is no number from 0 to {:g}", shown(table.name(*column)),
                     shown(cell), most);
}

}  // namespace

bool is_perceptron_table(const CsvTable& table) {
  const auto columns = columns_of(table);
  return columns.batch && columns.parameters && columns.widths &&
         (columns.memory || columns.utilisation);
}

Result<PerceptronData> read_perceptrons(CsvTable& table) {
  const auto columns = columns_of(table);
  PerceptronData data;
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    const auto widths = read_widths(table.cell(columns.widths));
    Shape shape{.widths = widths.value_or(std::vector<double>{}),
                .batch = count_in(table, columns.batch),
                .parameters = count_in(table, columns.parameters),
                .activations = count_in(table, columns.activations),
                .batchnorms = std::min(count_in(table, columns.batchnorms), 1e4),
                .dropouts = std::min(count_in(table, columns.dropouts), 1e4)};
    auto wrong = !widths           ? std::string("no widths")
                 : shape.batch < 1 ? "no batch"
                                   : wrong_in(table, columns.memory, kMostMib);
    if (wrong.empty()) wrong = wrong_in(table, columns.utilisation, kMostPercent);
    if (!wrong.empty()) {
      if (data.skipped++ == 0) data.first_skipped = fmt::format("{}: {}", table.place(), wrong);
      continue;
    }
    if (data.rows.size() == kMaxPerceptrons)
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: more than {} rows", table.place(), kMaxPerceptrons));
    data.rows.push_back(row_of(shape));
    data.memory_mib.push_back(measured(table, columns.memory));
    data.utilisation_percent.push_back(measured(table, columns.utilisation));
    data.families.emplace_back(table.cell(columns.family));
    data.activations.emplace_back(table.cell(columns.activation));
  }
  if (data.rows.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no row with batch and widths{}", table.place(),
                            data.first_skipped.empty() ? "" : "; " + data.first_skipped));
  return data;
}

}  // namespace tierpilot::sharing
