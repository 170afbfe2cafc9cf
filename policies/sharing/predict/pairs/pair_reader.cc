#include <fmt/format.h>

#include <algorithm>

#include "base/table/cell.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMaxRows = 200'000;
constexpr double kMaxSpeed = 1e9;     // steps per second
constexpr double kMostFigure = 1e15;  // of any figure
// Of the ratio of two medians of five rounds each, by the spread of one round.
constexpr double kOfRounds = 0.79;
// More or less is a mistake of measuring, and would rule all means.
constexpr double kMaxRetained = 2, kLeastRetained = 1e-4;

struct Columns {
  std::optional<size_t> gpu, models[2], batches[2], alone[2], together[2];
  std::optional<size_t> milli[2], traced_milli[2], memory[2], traffic[2], spreads[2];
};

Columns columns_of(const CsvTable& table) {
  return {table.find({"gpu", "card"}),
          {table.find({"model_a"}), table.find({"model_b"})},
          {table.find({"batch_a"}), table.find({"batch_b"})},
          {table.find({"alone_a"}), table.find({"alone_b"})},
          {table.find({"together_a"}), table.find({"together_b"})},
          {table.find({"milli_a"}), table.find({"milli_b"})},
          {table.find({"traced_milli_a"}), table.find({"traced_milli_b"})},
          {table.find({"memory_bytes_a"}), table.find({"memory_bytes_b"})},
          {table.find({"traffic_bytes_s_a"}), table.find({"traffic_bytes_s_b"})},
          {table.find({"spread_a"}), table.find({"spread_b"})}};
}

// 0: there is no such number.
double number_at(const CsvTable& table, std::optional<size_t> column, double most) {
  return std::clamp(parse_number(table.cell(column)).value_or(0), 0.0, most);
}

// What `tierctl predictor collect --pairs` writes is whole; what others have published may not be.
Status check_figures(const CsvTable& table, const Columns& columns) {
  if (!columns.milli[0]) return {};
  if (table.cells() != table.columns())
    return fail(ErrorCode::kInvalid, fmt::format("{}: it has {} cells, and the header has {}",
                                                 table.place(), table.cells(), table.columns()));
  for (const auto* each : {columns.batches, columns.milli, columns.traced_milli, columns.memory,
                           columns.traffic, columns.spreads, columns.alone, columns.together}) {
    const bool is_part = each == columns.milli || each == columns.traced_milli;
    const double most = is_part ? kWholeUnit : kMostFigure;
    for (int i = 0; i < 2; ++i) {
      const auto cell = table.cell(each[i]);
      const auto value = parse_number(cell);
      if (!cell.empty() && !(value && *value >= 0 && *value <= most))
        return fail(ErrorCode::kInvalid,
                    fmt::format("{}: its {} is {}, which is no number from 0 to {:g}",
                                table.place(), shown(table.name(*each[i])), shown(cell), most));
    }
  }
  return {};
}

std::string wrong_with(const PairJob& job, std::optional<double> together) {
  if (!(job.alone > 0) || job.alone > kMaxSpeed) return "no speed alone";
  if (!together || *together < 0) return "no speed together";
  if (*together > kMaxRetained * job.alone) return "faster together than alone";
  if (*together > 0 && *together < kLeastRetained * job.alone) return "it stood still together";
  return "";
}

}  // namespace

bool is_pair_table(const CsvTable& table) {
  const auto columns = columns_of(table);
  return columns.models[0] && columns.models[1] && columns.alone[0] && columns.alone[1] &&
         columns.together[0] && columns.together[1];
}

Result<PairData> read_pairs(CsvTable& table) {
  const auto columns = columns_of(table);
  PairData data;
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    if (auto whole = check_figures(table, columns); !whole) return tl::unexpected(whole.error());
    PairJob jobs[2];
    double together[2] = {}, noise[2] = {};
    std::string wrong;
    for (int i = 0; i < 2 && wrong.empty(); ++i) {
      jobs[i].model = table.cell(columns.models[i]);
      jobs[i].batch = number_at(table, columns.batches[i], 1e9);
      jobs[i].milli = number_at(table, columns.milli[i], kWholeUnit);
      jobs[i].traced_milli = number_at(table, columns.traced_milli[i], kWholeUnit);
      jobs[i].memory_bytes = number_at(table, columns.memory[i], 1e15);
      jobs[i].traffic_bytes_s = number_at(table, columns.traffic[i], 1e15);
      noise[i] = kOfRounds * number_at(table, columns.spreads[i], 1);
      jobs[i].alone = parse_number(table.cell(columns.alone[i])).value_or(0);
      const auto speed = parse_number(table.cell(columns.together[i]));
      wrong = wrong_with(jobs[i], speed);
      together[i] = speed.value_or(0);
    }
    if (!wrong.empty()) {
      if (data.skipped++ == 0) data.first_skipped = fmt::format("{}: {}", table.place(), wrong);
      continue;
    }
    if (together[0] == 0 || together[1] == 0) {
      ++data.do_not_fit;
      continue;
    }
    if (data.samples.size() >= 2 * kMaxRows)
      return fail(ErrorCode::kExhausted,
                  fmt::format("{}: more than {} pairs", table.place(), kMaxRows));
    const std::string card(table.cell(columns.gpu));
    for (int i = 0; i < 2; ++i)
      data.samples.push_back({card, jobs[i], jobs[1 - i], together[i] / jobs[i].alone, noise[i]});
  }
  if (data.samples.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no pair with speeds alone and together{}", table.place(),
                            data.first_skipped.empty() ? "" : "; " + data.first_skipped));
  return data;
}

}  // namespace tierpilot::sharing
