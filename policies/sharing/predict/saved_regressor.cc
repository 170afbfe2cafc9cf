#include <nlohmann/json.hpp>

#include "base/text/json_whole.h"
#include "policies/sharing/predict/saved_kinds.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 8;

std::unique_ptr<Regressor> read(const json& saved, size_t columns, int nesting);

std::unique_ptr<Regressor> read_stacked(const json& saved, size_t columns, int nesting) {
  auto first = read(saved.at("first"), columns, nesting);
  auto second = read(saved.at("second"), columns, nesting);
  return first && second ? make_stacked(std::move(first), std::move(second)) : nullptr;
}

std::unique_ptr<Regressor> read_average(const json& saved, size_t columns, int nesting) {
  std::vector<std::unique_ptr<Regressor>> members;
  for (const auto& each : saved.at("members")) {
    members.push_back(read(each, columns, nesting));
    if (!members.back()) return nullptr;
  }
  return members.empty() ? nullptr : make_average(std::move(members));
}

std::unique_ptr<Regressor> read_on_columns(const json& saved, size_t columns, int nesting) {
  std::vector<size_t> picked;
  for (const auto& column : saved.at("columns")) picked.push_back(whole_number<size_t>(column));
  for (const auto column : picked)
    if (column >= columns) return nullptr;
  if (saved.contains("of") && whole_number<size_t>(saved["of"]) != columns)  // old ones do not tell
    return nullptr;
  auto inner = read(saved.at("regressor"), picked.size(), nesting);
  return inner ? make_on_columns(picked, std::move(inner), columns) : nullptr;
}

std::unique_ptr<Regressor> read(const json& saved, size_t columns, int nesting) {
  if (nesting == kMaxNesting) return nullptr;
  const auto kind = saved.at("kind").get<std::string>();
  if (kind == "cost sum") return read_cost_sum(saved, columns);
  if (kind == "boosted trees") return read_boosted_trees(saved, columns);
  if (kind == "kriging") return read_kriging(saved, columns);
  if (kind == "ridge") return read_ridge(saved, columns);
  if (kind == "perceptron") return read_perceptron(saved, columns);
  if (kind == "stacked") return read_stacked(saved, columns, nesting + 1);
  if (kind == "average") return read_average(saved, columns, nesting + 1);
  if (kind == "on columns") return read_on_columns(saved, columns, nesting + 1);
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Regressor>> read_regressor(const json& saved, size_t columns) {
  try {
    if (auto regressor = read(saved, columns, 0)) return regressor;
  } catch (const json::exception&) {  // as for what does not fit
  }
  return fail(ErrorCode::kInvalid,
              "a regressor in it is of no known kind, or its figures do not fit");
}

}  // namespace tierpilot::sharing
