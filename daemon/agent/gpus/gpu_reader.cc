#include "daemon/agent/gpus/gpu_reader.h"

#include <algorithm>
#include <optional>

#include "daemon/topology/nvml.h"

namespace tierpilot::agent {

namespace {

// `nvml`: none where it did not open, or a device did not answer.
Result<std::vector<GpuReading>> read_gpus(const std::string& library, std::optional<Nvml>& nvml) {
  if (!nvml) {
    auto opened = Nvml::open(library);
    if (!opened) return tl::unexpected(opened.error());
    nvml.emplace(std::move(*opened));
  }
  std::vector<std::string> warnings;
  const auto gpus = nvml->gpus(warnings);
  std::vector<GpuReading> readings;
  for (const auto& gpu : gpus.value_or(std::vector<Gpu>{})) {
    GpuReading reading{.gpu = gpu.uuid,
                       .temperature_c = {},
                       .memory_used_bytes = {},
                       .busy_percent = gpu.utilisation_percent};
    if (const auto use = nvml->use(gpu.index)) reading.temperature_c = use->temperature_c;
    if (gpu.memory_total_bytes && gpu.memory_free_bytes)
      reading.memory_used_bytes =
          *gpu.memory_total_bytes - std::min(*gpu.memory_free_bytes, *gpu.memory_total_bytes);
    readings.push_back(std::move(reading));
  }
  // A device that comes back is shown to new sessions only.
  if (!gpus || !warnings.empty()) nvml.reset();
  if (!gpus) return tl::unexpected(gpus.error());
  return readings;
}

}  // namespace

GpuReader::GpuReader(Options options, Read read)
    : thread_([options = std::move(options), read = std::move(read)](DriverStop& stop) {
        std::optional<Nvml> nvml;
        while (!stop.stopped()) {
          auto readings = read_gpus(options.library, nvml);
          stop.tell([&] { read(std::move(readings)); });
          stop.wait(std::chrono::milliseconds(options.period_ms));
        }
      }) {}

}  // namespace tierpilot::agent
