#include <nlohmann/json.hpp>

#include "base/text/json_whole.h"
#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/jobs/gpu_model.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::json;

// What its columns are made of: weights of others would be taken for those of these. 1, not told:
// what is moved, by a GPU's bytes per second alone; 2: memory without a card's totals.
constexpr uint32_t kColumns = 3;

json kind_json(const GpuFeatures& gpu) {
  return {{"name", gpu.name},
          {"compute_capability", gpu.compute_capability},
          {"memory_bytes", gpu.memory_bytes},
          {"cores", gpu.cores},
          {"sm_clock_mhz", gpu.sm_clock_mhz},
          {"memory_clock_mhz", gpu.memory_clock_mhz},
          {"bus_width_bits", gpu.bus_width_bits}};
}

// Negative ones would be read as huge ones.
bool has_sound_figures(const json& kind) {
  for (const auto& [name, figure] : kind.items())
    if (name != "name" && !(figure.is_number() && figure.get<double>() >= 0)) return false;
  return true;
}

GpuFeatures read_kind(const json& saved) {
  return {.name = saved.at("name").get<std::string>(),
          .compute_capability = saved.at("compute_capability").get<double>(),
          .memory_bytes = whole_number<uint64_t>(saved.at("memory_bytes")),
          .cores = whole_number<uint32_t>(saved.at("cores")),
          .sm_clock_mhz = whole_number<uint32_t>(saved.at("sm_clock_mhz")),
          .memory_clock_mhz = whole_number<uint32_t>(saved.at("memory_clock_mhz")),
          .bus_width_bits = whole_number<uint32_t>(saved.at("bus_width_bits"))};
}

}  // namespace

json gpu_model_json(const GpuModel& model) {
  json kinds = json::array(), totals = json::array();
  for (const auto& gpu : model.kinds) kinds.push_back(kind_json(gpu));
  for (const auto& range : model.cards.totals) totals.push_back({range.least, range.most});
  return {{"columns", kColumns},
          {"calibration_s", model.calibration_s},
          {"host_ops_per_s", model.host_ops_per_s},
          {"gpus", kinds},
          {"margins", margins_json(model.margins)},
          {"unseen_margins", margins_json(model.unseen_margins)},
          {"totals", totals},
          {"kinds", model.cards.kinds},
          {"architectures", model.architectures},
          {"busy", model.busy->saved()},
          {"step", model.step->saved()},
          {"memory", model.memory->saved()}};
}

Result<GpuModel> read_gpu_model(const json& saved) {
  if (!saved.contains("columns") || whole_number<uint32_t>(saved["columns"]) != kColumns)
    return fail(ErrorCode::kInvalid,
                "what it knows of GPUs was learned by another version: train it again");
  GpuModel model;
  const auto unsound = fail(ErrorCode::kInvalid, "its figures of GPUs can be of no machine");
  for (const auto& gpu : saved.at("gpus")) {
    if (!has_sound_figures(gpu)) return unsound;
    model.kinds.push_back(read_kind(gpu));
  }
  model.calibration_s = saved.at("calibration_s").get<double>();
  model.host_ops_per_s = saved.at("host_ops_per_s").get<double>();
  model.margins = read_margins(saved.at("margins"));
  model.unseen_margins = read_margins(saved.at("unseen_margins"));
  if (!are_margins(model.margins) || !are_margins(model.unseen_margins) ||
      !(model.calibration_s > 0) || !(model.host_ops_per_s >= 0))
    return unsound;
  for (const auto& range : saved.at("totals"))
    model.cards.totals.push_back({range.at(0).get<double>(), range.at(1).get<double>()});
  model.cards.kinds = saved.at("kinds").get<std::set<std::string>>();
  model.architectures = saved.value("architectures", std::set<std::string>{});
  if (model.kinds.empty() || model.cards.totals.size() != totals_of({}).size())
    return fail(ErrorCode::kInvalid, "its figures of GPUs are not whole");
  const std::pair<const char*, std::pair<std::unique_ptr<Regressor>*, size_t>> parts[]{
      {"busy", {&model.busy, gpu_row({}, {}).size()}},
      {"step", {&model.step, gpu_row({}, {}).size()}},
      {"memory", {&model.memory, gpu_memory_row({}, {}).size()}}};
  for (const auto& [name, part] : parts) {
    auto regressor = read_regressor(saved.at(name), part.second);
    if (!regressor) return tl::unexpected(regressor.error());
    *part.first = std::move(*regressor);
  }
  return model;
}

}  // namespace tierpilot::sharing
