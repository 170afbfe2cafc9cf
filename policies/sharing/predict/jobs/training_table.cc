#include "policies/sharing/predict/jobs/training_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/table/cell.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMaxRows = 100'000;
constexpr double kMost = 1e15;
constexpr double kLeastS = 1e-9, kMostS = 1e9;  // of anything that was measured

using Column = std::optional<size_t>;

struct KindColumns {
  std::string kind;
  Column count, largest_input, input_sum, output_sum, parameter_sum, flops;
};

std::string lower(std::string_view text) {
  std::string small(text);
  for (auto& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

// One architecture in any writing: what is trained on is told from what is new by it.
std::string plain_architecture(std::string_view name) {
  const auto first = name.find_first_not_of(" \t"), last = name.find_last_not_of(" \t");
  return first == name.npos ? std::string() : lower(name.substr(first, last - first + 1));
}

// Kinds of operators that the header tells of, and nobody here knows.
std::vector<std::string> unknown_kinds(const CsvTable& table) {
  constexpr std::string_view kCount = ".count";
  std::set<std::string> known;
  for (const auto kind : operator_kinds()) known.insert(lower(kind));
  std::vector<std::string> unknown;
  for (size_t i = 0; i < table.columns(); ++i) {
    const auto name = table.name(i);
    if (name.size() <= kCount.size() || !lower(name).ends_with(kCount)) continue;
    const auto kind = name.substr(0, name.size() - kCount.size());
    if (!known.contains(lower(kind))) unknown.emplace_back(kind);
  }
  return unknown;
}

class Reader {
 public:
  explicit Reader(CsvTable& table) : table_(table) {
    for (const auto kind : operator_kinds()) add_kind(std::string(kind), std::string(kind));
    for (const auto& kind : unknown_kinds(table)) add_kind(kind, "Unknown");
  }

  // Nothing where a figure that is needed is missing, which missing() names; kInvalid: one is no
  // figure, or the row has not the header's cells.
  Result<std::optional<MeasuredTraining>> row() {
    wrong_.clear();
    missing_.clear();
    if (table_.cells() != table_.columns())
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: it has {} cells, and the header has {}", table_.place(),
                              table_.cells(), table_.columns()));
    MeasuredTraining row{.architecture = plain_architecture(cell("architecture")),
                         .card = card(),
                         .utilisation_milli = needed("utilisation_milli", kWholeUnit),
                         .memory_bytes = told("memory_bytes"),
                         .iteration_s = needed_time("iteration_s"),
                         .busy_s = needed_time("busy_s"),
                         .calibration_s = needed_time("calibration_s"),
                         .gpu = gpu(),
                         .step_s = time("step_s"),
                         .traced = figure("kernels") > 0};
    if (row.gpu) needed_time("step_s");
    if (row.card.batch == 0) missing_ = "batch";
    if (row.architecture.empty()) missing_ = "architecture";
    if (!wrong_.empty()) return fail(ErrorCode::kInvalid, table_.place() + ": " + wrong_);
    return missing_.empty() ? std::optional(std::move(row)) : std::nullopt;
  }
  const std::string& missing() const { return missing_; }

 private:
  void add_kind(const std::string& called, const std::string& kind) {
    const auto column = [&](const char* name) {
      const auto full = fmt::format("{}.{}", called, name);
      return table_.find({full});
    };
    kinds_.push_back({kind, column("count"), column("largest_input"), column("input_sum"),
                      column("output_sum"), column("parameter_sum"), column("flops")});
  }

  std::string_view cell(const char* name) const { return table_.cell(table_.find({name})); }
  double figure(Column column, double most = kMost) {
    const auto cell = table_.cell(column);
    if (cell.empty()) return 0;
    const auto value = parse_number(cell);
    if (value && *value >= 0 && *value <= most) return *value;
    if (wrong_.empty())
      wrong_ = fmt::format("its {} is {}, which is no number from 0 to {:g}",
                           shown(table_.name(*column)), shown(cell), most);
    return 0;
  }
  double figure(const char* name) { return figure(table_.find({name})); }
  // It may be 0, but has to be there.
  double told(const char* name) {
    if (cell(name).empty()) missing_ = name;
    return figure(name);
  }
  double needed(const char* name, double most = kMost) {
    const double value = figure(table_.find({name}), most);
    if (value == 0) missing_ = name;
    return value;
  }
  // A time that nobody can have measured would be learned from like any other.
  double time(const char* name) {
    const auto column = table_.find({name});
    const double value = figure(column);
    if (value > 0 && (value < kLeastS || value > kMostS) && wrong_.empty())
      wrong_ = fmt::format("its {} is {}, and no time of {:g} to {:g} s was measured", name,
                           shown(table_.cell(column)), kLeastS, kMostS);
    return value;
  }
  double needed_time(const char* name) {
    const double value = time(name);
    if (value == 0) missing_ = name;
    return value;
  }
  uint64_t count(const char* name) { return static_cast<uint64_t>(figure(name)); }

  std::optional<GpuFeatures> gpu() {
    const auto name = cell("gpu_name");
    if (name.empty()) {
      for (const auto* of_gpus : {"gpu_memory_bytes", "gpu_cores", "kernels"})
        if (figure(of_gpus) > 0) missing_ = "gpu_name";
      return std::nullopt;
    }
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

  ModelCard card() {
    ModelCard card{.batch = static_cast<uint32_t>(std::min(needed("batch"), 4e9)),
                   .input_elements = figure("input_elements"),
                   .parameters = told("parameters"),
                   .parameter_bytes = told("parameter_bytes"),
                   .parameter_tensors = static_cast<uint64_t>(told("parameter_tensors")),
                   .activation_bytes = told("activation_bytes"),
                   .traffic_bytes = told("traffic_bytes"),
                   .flops = told("flops"),
                   .depth = count("depth"),
                   .launches = static_cast<uint64_t>(told("launches"))};
    card.job = JobCard{.iterations = static_cast<uint64_t>(needed("iterations")),
                       .optimizer = std::string(cell("optimizer")),
                       .load_s = figure("load_s"),
                       .loads_ahead = figure("loads_ahead") > 0,
                       .threads = static_cast<uint32_t>(std::min(figure("threads"), 1e5))};
    for (const auto& columns : kinds_) {
      const auto times = static_cast<uint64_t>(figure(columns.count));
      const OperatorUse more{.count = times,
                             .largest_input = figure(columns.largest_input),
                             .input_sum = figure(columns.input_sum),
                             .output_sum = figure(columns.output_sum),
                             .parameter_sum = figure(columns.parameter_sum),
                             .flops = figure(columns.flops)};
      if (times == 0) continue;
      auto& use = card.operators[columns.kind];  // of several kinds, where nobody knows them
      use.count += more.count;
      use.largest_input = std::max(use.largest_input, more.largest_input);
      use.input_sum += more.input_sum;
      use.output_sum += more.output_sum;
      use.parameter_sum += more.parameter_sum;
      use.flops += more.flops;
    }
    return card;
  }

  CsvTable& table_;
  std::vector<KindColumns> kinds_;
  std::string wrong_, missing_;  // in this row
};

// Of two columns of one name the second would never be read.
Status check_header(const CsvTable& table) {
  std::set<std::string> names;
  for (size_t i = 0; i < table.columns(); ++i) {
    if (!names.insert(lower(table.name(i))).second)
      return fail(ErrorCode::kInvalid, fmt::format("{}: two columns are called {}", table.place(),
                                                   shown(table.name(i))));
  }
  return {};
}

}  // namespace

bool is_training_table(const CsvTable& table) {
  return table.find({"architecture"}) && table.find({"utilisation_milli"}) &&
         table.find({"iteration_s"}) && table.find({"busy_s"}) && table.find({"MatMul.count"});
}

Result<TrainingTable> read_trainings(CsvTable& table) {
  if (auto header = check_header(table); !header) return tl::unexpected(header.error());
  TrainingTable trainings;
  Reader reader(table);
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    auto read = reader.row();
    if (!read) return tl::unexpected(read.error());
    auto& row = *read;
    if (!row) {
      if (trainings.skipped++ == 0)
        trainings.first_skipped =
            fmt::format("{}: its '{}' is missing or 0", table.place(), reader.missing());
      continue;
    }
    if (trainings.rows.size() == kMaxRows)
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: more than {} rows", table.place(), kMaxRows));
    trainings.rows.push_back(std::move(*row));
  }
  if (trainings.rows.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no row with all figures{}", table.place(),
                            trainings.skipped ? "; " + trainings.first_skipped : ""));
  return trainings;
}

}  // namespace tierpilot::sharing
