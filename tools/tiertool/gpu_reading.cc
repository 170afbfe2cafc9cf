#include "tools/tiertool/gpu_reading.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>

#include <filesystem>

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

template <class Value>
ordered_json known(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

std::string text_of(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

ordered_json user_of(const std::filesystem::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return nullptr;
  const auto* entry = ::getpwuid(status.st_uid);
  return entry ? ordered_json(entry->pw_name) : ordered_json(std::to_string(status.st_uid));
}

// "12-3": attempt 3 of task 12, of which this process is one.
ordered_json task_of(const std::string& environment) {
  std::string task, attempt;
  size_t begin = 0;
  while (begin < environment.size()) {
    const size_t end = std::min(environment.find('\0', begin), environment.size());
    const auto variable = std::string_view(environment).substr(begin, end - begin);
    const auto value = [&](std::string_view name, std::string& into) {
      if (variable.starts_with(name)) into = variable.substr(name.size());
    };
    value("TIERPILOT_TASK_ID=", task);
    value("TIERPILOT_ATTEMPT=", attempt);
    begin = end + 1;
  }
  if (task.empty()) return nullptr;
  return attempt.empty() ? task : fmt::format("{}-{}", task, attempt);
}

ordered_json row_of(int gpu, const GpuProcess& process, const Sysroot& sysroot) {
  const auto folder = fmt::format("/proc/{}", process.pid);
  const auto command = sysroot.read(folder + "/comm");
  const auto environment = sysroot.read(folder + "/environ");
  return {{"gpu", gpu},
          {"pid", process.pid},
          {"command", command ? ordered_json(text_of(*command)) : ordered_json()},
          {"user", user_of(sysroot.resolve(folder))},
          {"task", environment ? task_of(*environment) : ordered_json()},
          {"memory_bytes", known(process.memory_bytes)},
          {"sm", process.sm_percent ? ordered_json(*process.sm_percent / 100.0) : ordered_json()},
          {"mps", process.mps}};
}

ordered_json gpu_row(const Gpu& gpu, const GpuUse& use) {
  std::optional<uint64_t> used;
  if (gpu.memory_total_bytes && gpu.memory_free_bytes)
    used = *gpu.memory_total_bytes - std::min(*gpu.memory_total_bytes, *gpu.memory_free_bytes);
  const auto& percent = gpu.utilisation_percent;
  return {{"gpu", gpu.index},
          {"uuid", gpu.uuid},
          {"name", gpu.name},
          {"utilisation", percent ? ordered_json(*percent / 100.0) : ordered_json()},
          {"memory_used_bytes", known(used)},
          {"memory_total_bytes", known(gpu.memory_total_bytes)},
          {"temperature_c", known(use.temperature_c)},
          {"power_w", known(use.power_w)},
          {"compute_capability", known(gpu.compute_capability)},
          {"cores", known(gpu.cores)},
          {"sm_clock_mhz", known(gpu.sm_clock_mhz)},
          {"memory_clock_mhz", known(gpu.memory_clock_mhz)},
          {"bus_width_bits", known(gpu.bus_width_bits)}};
}

}  // namespace

Result<ordered_json> read_gpus(const Nvml& nvml, const Sysroot& sysroot) {
  std::vector<std::string> warnings;
  const auto gpus = nvml.gpus(warnings);
  if (!gpus) return tl::unexpected(gpus.error());
  ordered_json rows = ordered_json::array(), processes = ordered_json::array();
  for (const auto& gpu : *gpus) {
    const auto use = nvml.use(gpu.index);
    if (!use) {
      warnings.push_back(use.error().message);
      rows.push_back(gpu_row(gpu, {}));
      continue;
    }
    if (!use->processes_unavailable.empty())
      warnings.push_back(
          fmt::format("GPU {}: its processes: {}", gpu.index, use->processes_unavailable));
    rows.push_back(gpu_row(gpu, *use));
    for (const auto& process : use->processes)
      processes.push_back(row_of(gpu.index, process, sysroot));
  }
  return ordered_json{{"gpus", rows}, {"processes", processes}, {"warnings", warnings}};
}

}  // namespace tierpilot::tiertool
