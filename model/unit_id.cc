#include "model/unit_id.h"

#include <fmt/format.h>

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, 2> kEngines{"cpu", "gpu"};

}  // namespace

std::string_view engine_name(Engine engine) {
  return name_in(kEngines, engine);
}

std::optional<Engine> parse_engine(std::string_view text) {
  return parse_in<Engine>(kEngines, text);
}

std::string cpu_unit_id(const std::string& node, uint32_t number) {
  return fmt::format("{}/{}/{}", node, engine_name(Engine::kCpu), number);
}

std::string gpu_unit_id(const std::string& node, const std::string& uuid) {
  return fmt::format("{}/{}/{}", node, engine_name(Engine::kGpu), uuid);
}

std::optional<UnitName> parse_unit_id(std::string_view id) {
  const size_t unit = id.rfind('/');
  if (unit == id.npos || unit == 0 || unit + 1 == id.size()) return std::nullopt;
  const size_t engine = id.rfind('/', unit - 1);
  if (engine == id.npos || engine == 0) return std::nullopt;
  const auto known = parse_engine(id.substr(engine + 1, unit - engine - 1));
  if (!known) return std::nullopt;
  return UnitName{id.substr(0, engine), *known, id.substr(unit + 1)};
}

}  // namespace tierpilot
