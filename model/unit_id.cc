#include "model/unit_id.h"

#include <fmt/format.h>

#include <charconv>

#include "model/names.h"

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, 2> kEngines{"cpu", "gpu"};
constexpr std::string_view kCores = "cores";

struct Parts {
  std::string_view node, kind, unit;
};

std::optional<Parts> parts_of(std::string_view id) {
  const size_t unit = id.rfind('/');
  if (unit == id.npos || unit == 0 || unit + 1 == id.size()) return std::nullopt;
  const size_t kind = id.rfind('/', unit - 1);
  if (kind == id.npos || kind == 0) return std::nullopt;
  return Parts{id.substr(0, kind), id.substr(kind + 1, unit - kind - 1), id.substr(unit + 1)};
}

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
  const auto parts = parts_of(id);
  if (!parts) return std::nullopt;
  const auto known = parse_engine(parts->kind);
  if (!known) return std::nullopt;
  return UnitName{parts->node, *known, parts->unit};
}

std::string shared_cores_id(const std::string& node, uint32_t number) {
  return fmt::format("{}/{}/{}", node, kCores, number);
}

std::optional<SharedCoresName> parse_shared_cores_id(std::string_view id) {
  const auto parts = parts_of(id);
  if (!parts || parts->kind != kCores) return std::nullopt;
  SharedCoresName name{parts->node};
  const auto* const end = parts->unit.data() + parts->unit.size();
  const auto read = std::from_chars(parts->unit.data(), end, name.number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return name;
}

}  // namespace tierpilot
