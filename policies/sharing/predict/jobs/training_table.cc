#include "policies/sharing/predict/jobs/training_table.h"

#include <fmt/format.h>

#include <cmath>

#include "base/table/cell.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMaxRows = 100'000;
constexpr double kMost = 1e15;

using Column = std::optional<size_t>;

struct KindColumns {
  std::string kind;
  Column count, largest_input, input_sum, output_sum, parameter_sum, flops;
};

class Reader {
 public:
  explicit Reader(CsvTable& table) : table_(table) {
    for (const auto kind : operator_kinds()) {
      const auto column = [&](const char* name) {
        const auto full = fmt::format("{}.{}", kind, name);
        return table_.find({full});
      };
      kinds_.push_back({std::string(kind), column("count"), column("largest_input"),
                        column("input_sum"), column("output_sum"), column("parameter_sum"),
                        column("flops")});
    }
  }

  // Nothing where a figure that is needed is missing.
  std::optional<MeasuredTraining> row() const {
    MeasuredTraining row{.architecture = std::string(table_.cell(table_.find({"architecture"}))),
                         .card = card(),
                         .utilisation_milli = figure("utilisation_milli"),
                         .memory_bytes = figure("memory_bytes"),
                         .iteration_s = figure("iteration_s"),
                         .busy_s = figure("busy_s"),
                         .calibration_s = figure("calibration_s"),
                         .gpu = gpu(),
                         .step_s = figure("step_s")};
    const bool whole = !row.architecture.empty() && row.card.batch > 0 &&
                       row.utilisation_milli > 0 && row.utilisation_milli <= 1000 &&
                       row.iteration_s > 0 && row.busy_s > 0 && row.calibration_s > 0 &&
                       (!row.gpu || row.step_s > 0);
    return whole ? std::optional(row) : std::nullopt;
  }

 private:
  double figure(Column column) const {
    const auto value = parse_number(table_.cell(column));
    return value && *value >= 0 && *value <= kMost ? *value : 0;
  }
  double figure(const char* name) const { return figure(table_.find({name})); }
  uint64_t count(const char* name) const { return static_cast<uint64_t>(figure(name)); }

  std::optional<GpuFeatures> gpu() const {
    const auto name = table_.cell(table_.find({"gpu_name"}));
    if (name.empty()) return std::nullopt;
    const auto whole = [&](const char* column) {
      return static_cast<uint32_t>(std::min(figure(column), 4e9));
    };
    return GpuFeatures{.name = std::string(name),
                       .compute_capability = figure("gpu_compute_capability"),
                       .memory_bytes = count("gpu_memory_bytes"),
                       .cores = whole("gpu_cores"),
                       .sm_clock_mhz = whole("gpu_sm_clock_mhz"),
                       .memory_clock_mhz = whole("gpu_memory_clock_mhz"),
                       .bus_width_bits = whole("gpu_bus_width_bits")};
  }

  ModelCard card() const {
    ModelCard card{.batch = static_cast<uint32_t>(std::min(figure("batch"), 4e9)),
                   .input_elements = figure("input_elements"),
                   .parameters = figure("parameters"),
                   .parameter_bytes = figure("parameter_bytes"),
                   .parameter_tensors = count("parameter_tensors"),
                   .activation_bytes = figure("activation_bytes"),
                   .traffic_bytes = figure("traffic_bytes"),
                   .flops = figure("flops"),
                   .depth = count("depth"),
                   .launches = count("launches")};
    card.job = JobCard{.iterations = count("iterations"),
                       .optimizer = std::string(table_.cell(table_.find({"optimizer"}))),
                       .load_s = figure("load_s"),
                       .loads_ahead = figure("loads_ahead") > 0,
                       .threads = static_cast<uint32_t>(std::min(figure("threads"), 1e5))};
    for (const auto& columns : kinds_) {
      const OperatorUse use{.count = static_cast<uint64_t>(figure(columns.count)),
                            .largest_input = figure(columns.largest_input),
                            .input_sum = figure(columns.input_sum),
                            .output_sum = figure(columns.output_sum),
                            .parameter_sum = figure(columns.parameter_sum),
                            .flops = figure(columns.flops)};
      if (use.count > 0) card.operators[columns.kind] = use;
    }
    return card;
  }

  CsvTable& table_;
  std::vector<KindColumns> kinds_;
};

}  // namespace

bool is_training_table(const CsvTable& table) {
  return table.find({"architecture"}) && table.find({"utilisation_milli"}) &&
         table.find({"iteration_s"}) && table.find({"busy_s"}) && table.find({"MatMul.count"});
}

Result<TrainingTable> read_trainings(CsvTable& table) {
  TrainingTable trainings;
  const Reader reader(table);
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    auto row = reader.row();
    if (!row) {
      if (trainings.skipped++ == 0)
        trainings.first_skipped = fmt::format("{}: a figure is missing", table.place());
      continue;
    }
    if (trainings.rows.size() == kMaxRows)
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: more than {} rows", table.place(), kMaxRows));
    trainings.rows.push_back(std::move(*row));
  }
  if (trainings.rows.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: no row with all figures", table.place()));
  return trainings;
}

}  // namespace tierpilot::sharing
