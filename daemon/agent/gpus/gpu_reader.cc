#include "daemon/agent/gpus/gpu_reader.h"

#include <algorithm>

namespace tierpilot::agent {

GpuReader::GpuReader(Options options, Read read)
    : options_(std::move(options)), read_(std::move(read)) {
  thread_ = std::thread([this] { run(); });
}

GpuReader::~GpuReader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void GpuReader::run() {
  while (true) {
    read_(read());
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, std::chrono::milliseconds(options_.period_ms), [this] { return stop_; });
    if (stop_) return;
  }
}

Result<std::vector<GpuReading>> GpuReader::read() {
  if (!nvml_) {
    auto opened = Nvml::open(options_.library);
    if (!opened) return tl::unexpected(opened.error());
    nvml_.emplace(std::move(*opened));
  }
  std::vector<std::string> warnings;
  const auto gpus = nvml_->gpus(warnings);
  std::vector<GpuReading> readings;
  for (const auto& gpu : gpus.value_or(std::vector<Gpu>{})) {
    GpuReading reading{.gpu = gpu.uuid,
                       .temperature_c = {},
                       .memory_used_bytes = {},
                       .busy_percent = gpu.utilisation_percent};
    if (const auto use = nvml_->use(gpu.index)) reading.temperature_c = use->temperature_c;
    if (gpu.memory_total_bytes && gpu.memory_free_bytes)
      reading.memory_used_bytes =
          *gpu.memory_total_bytes - std::min(*gpu.memory_free_bytes, *gpu.memory_total_bytes);
    readings.push_back(std::move(reading));
  }
  // A device that comes back is shown to new sessions only.
  if (!gpus || !warnings.empty()) nvml_.reset();
  if (!gpus) return tl::unexpected(gpus.error());
  return readings;
}

}  // namespace tierpilot::agent
