// What computes, and the smallest pieces of it that are handed out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tierpilot {

// cpu: a group of cores. gpu: a device.
enum class Engine { kCpu, kGpu };

// "cpu", "gpu"; a string literal.
std::string_view engine_name(Engine engine);
std::optional<Engine> parse_engine(std::string_view text);

// NODE/cpu/NUMBER, NODE/gpu/UUID: as units are stored and shown.
std::string cpu_unit_id(const std::string& node, uint32_t number);
std::string gpu_unit_id(const std::string& node, const std::string& uuid);

struct UnitName {
  std::string_view node;
  Engine engine = Engine::kCpu;
  std::string_view unit;  // number or UUID
};
// Of views into `id`; nullopt: it is no unit's. A node's name may have slashes.
std::optional<UnitName> parse_unit_id(std::string_view id);

// NODE/cores/NUMBER: cores that tasks share, by number of their node's shared units. Gangs get
// others.
std::string shared_cores_id(const std::string& node, uint32_t number);

struct SharedCoresName {
  std::string_view node;
  uint32_t number = 0;
};
std::optional<SharedCoresName> parse_shared_cores_id(std::string_view id);

}  // namespace tierpilot
