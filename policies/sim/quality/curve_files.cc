#include "policies/sim/quality/curve_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/table/cell.h"
#include "base/table/csv_table.h"

namespace tierpilot::sim {
namespace {

namespace fs = std::filesystem;

struct Columns {
  size_t iteration = 0;
  size_t loss = 0;
  std::optional<size_t> seconds, milliseconds, family, parameters;
  std::vector<size_t> key;  // together they name a run
};

Result<Columns> find_columns(const CsvTable& table, const std::string& measure) {
  Columns columns;
  const auto iteration = table.require({"iteration", "step", "iter", "epoch", "k"});
  if (!iteration) return tl::unexpected(iteration.error());
  const auto loss = measure.empty() ? table.require({"loss", "train_loss", "training_loss"})
                                    : table.require({measure});
  if (!loss) return tl::unexpected(loss.error());
  columns.iteration = *iteration;
  columns.loss = *loss;
  columns.seconds = table.find({"seconds"});
  columns.milliseconds = table.find({"ms"});
  columns.family = table.find({"family", "workload", "model"});
  columns.parameters = table.find({"params_m"});
  for (const auto name :
       {"family", "workload", "model", "params_m", "run", "job", "curve", "name", "schedule"})
    if (const auto column = table.find({name})) columns.key.push_back(*column);
  return columns;
}

// Losses that diverged are written in many ways; an empty cell is none at all.
std::optional<double> loss_of(std::string_view cell) {
  std::string word;
  for (const char c : cell)
    if (!std::isspace(static_cast<unsigned char>(c))) word += static_cast<char>(std::tolower(c));
  const std::string_view name =
      word.starts_with('-') || word.starts_with('+') ? std::string_view(word).substr(1) : word;
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (name == "inf" || name == "infinity") return std::numeric_limits<double>::infinity();
  return parse_number(cell);
}

using Families = std::map<std::string, std::string, std::less<>>;  // by run

// What "X_runs.csv" beside "X_curves.csv" says; nothing where there is no such table.
Families families_beside(const fs::path& path) {
  constexpr std::string_view kCurves = "_curves";
  Families families;
  const auto stem = path.stem().string();
  if (!stem.ends_with(kCurves)) return families;
  const auto beside =
      path.parent_path() / (stem.substr(0, stem.size() - kCurves.size()) + "_runs.csv");
  std::error_code ignored;
  if (!fs::exists(beside, ignored)) return families;
  auto table = CsvTable::open(beside);
  if (!table) return families;
  const auto run = table->find({"run"}), family = table->find({"workload", "family", "model"});
  if (!run || !family) return families;
  for (auto more = table->next(); more && *more; more = table->next())
    families.emplace(table->cell(run), table->cell(family));
  return families;
}

class CurveReader {
 public:
  CurveReader(const fs::path& path, Columns columns)
      : stem_(path.stem().string()),
        columns_(std::move(columns)),
        families_(families_beside(path)) {}

  void add_row(const CsvTable& row) {
    ++file_.rows;
    const auto iteration = parse_number(row.cell(columns_.iteration));
    const auto loss = loss_of(row.cell(columns_.loss));
    if (!iteration || !loss) return skip(row, iteration ? "no loss" : "no iteration");
    auto& curve = curve_of(row);
    curve.points.push_back({*iteration, *loss});
    auto seconds = parse_number(row.cell(columns_.seconds));
    if (const auto ms = parse_number(row.cell(columns_.milliseconds)); !seconds && ms)
      seconds = *ms / 1000;
    if (seconds) curve.seconds.push_back(*seconds);
  }
  CurveFile finish() && {
    for (auto& curve : file_.curves)
      if (curve.seconds.size() != curve.points.size()) curve.seconds.clear();
    return std::move(file_);
  }

 private:
  void skip(const CsvTable& row, std::string_view why) {
    if (++file_.skipped == 1) file_.first_skipped = fmt::format("{}: {}", row.place(), why);
  }
  LossCurve& curve_of(const CsvTable& row) {
    std::string run;
    for (const size_t column : columns_.key)
      run.append(run.empty() ? "" : "/").append(row.cell(column));
    if (run.empty()) run = stem_;
    const auto [found, is_new] = numbers_.try_emplace(run, file_.curves.size());
    if (is_new)
      file_.curves.push_back(
          {.run = run, .family = family_of(row, run), .points = {}, .seconds = {}});
    return file_.curves[found->second];
  }
  std::string family_of(const CsvTable& row, const std::string& run) const {
    if (const auto known = families_.find(run); known != families_.end()) return known->second;
    if (const auto cell = row.cell(columns_.family); !cell.empty()) return std::string(cell);
    if (const auto cell = row.cell(columns_.parameters); !cell.empty())
      return fmt::format("{} of {} M parameters", stem_, cell);
    return stem_;
  }

  std::string stem_;
  Columns columns_;
  Families families_;
  CurveFile file_;
  std::map<std::string, size_t> numbers_;
};

Result<std::vector<fs::path>> tables_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  if (error)
    return fail_errno(error.value(), fmt::format("folder '{}' of curves", folder.string()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

Result<CurveFile> read_curves(const fs::path& path, const std::string& measure) {
  auto table = CsvTable::open(path);
  if (!table) return tl::unexpected(table.error());
  auto columns = find_columns(*table, measure);
  if (!columns) return tl::unexpected(columns.error());
  CurveReader reader(path, std::move(*columns));
  for (;;) {
    const auto more = table->next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    reader.add_row(*table);
  }
  auto file = std::move(reader).finish();
  if (file.curves.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no row has both an iteration and a loss{}", path.string(),
                            file.skipped ? "; first: " + file.first_skipped : ""));
  return file;
}

Result<CurveFile> read_curve_files(const fs::path& path, const std::string& measure) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return read_curves(path, measure);
  const auto paths = tables_in(path);
  if (!paths) return tl::unexpected(paths.error());
  CurveFile all;
  std::string why = "it has no file *.csv";
  for (const auto& each : *paths) {
    auto file = read_curves(each, measure);
    if (!file) {
      why = file.error().message;
      continue;
    }
    for (auto& curve : file->curves) all.curves.push_back(std::move(curve));
    all.rows += file->rows;
    all.skipped += file->skipped;
    if (all.first_skipped.empty()) all.first_skipped = file->first_skipped;
  }
  if (all.curves.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("folder '{}' has no table of curves: {}", path.string(), why));
  return all;
}

}  // namespace tierpilot::sim
