#include "daemon/topology/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "daemon/topology/nvml_abi.h"

namespace tierpilot {
namespace {

// The binary interface of nvml.h, unchanged since driver 331 (pci_v3: driver 384).
using nvml::Device, nvml::kSuccess, nvml::Memory, nvml::Return;
constexpr Return kNotFound = 6;
constexpr Return kTooSmall = 7;
constexpr int kGpuSensor = 0;
constexpr int kSmClock = 1, kMemoryClock = 2;
constexpr size_t kMostProcesses = 4096;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr unsigned kNameBytes = 96;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Utilization {
  unsigned gpu, memory;
};
// Of the calls that end in _v3 (driver 510); _v2 ones have the same.
struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct ProcessSample {
  unsigned pid;
  unsigned long long at_us;
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessInfo) == 24 && sizeof(ProcessSample) == 32);
static_assert(sizeof(PciInfo) == 68 && sizeof(Utilization) == 8);

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  bool initialised = false;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*device_count)(unsigned*) = nullptr;
  Return (*device_by_index)(unsigned, Device*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;
  Return (*memory_info)(Device, Memory*) = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  // Not in every driver.
  using ProcessCall = Return (*)(Device, unsigned*, ProcessInfo*);
  ProcessCall compute_processes = nullptr, mps_processes = nullptr;
  Return (*process_samples)(Device, ProcessSample*, unsigned*, unsigned long long) = nullptr;
  Return (*temperature)(Device, int, unsigned*) = nullptr;
  Return (*power_mw)(Device, unsigned*) = nullptr;
  Return (*compute_capability)(Device, int*, int*) = nullptr;
  Return (*most_mhz)(Device, int, unsigned*) = nullptr;
  Return (*cores)(Device, unsigned*) = nullptr;           // driver 455
  Return (*bus_width_bits)(Device, unsigned*) = nullptr;  // driver 470

  ~Library() {
    if (initialised) shutdown();
    if (handle) dlclose(handle);
  }

  // Names the first function that is missing; empty when all are there.
  std::string resolve() {
    const auto bind = [this](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      return function != nullptr;
    };
    if (!bind(init, "nvmlInit_v2")) return "nvmlInit_v2";
    if (!bind(shutdown, "nvmlShutdown")) return "nvmlShutdown";
    if (!bind(error_string, "nvmlErrorString")) return "nvmlErrorString";
    if (!bind(device_count, "nvmlDeviceGetCount_v2")) return "nvmlDeviceGetCount_v2";
    if (!bind(device_by_index, "nvmlDeviceGetHandleByIndex_v2"))
      return "nvmlDeviceGetHandleByIndex_v2";
    if (!bind(name, "nvmlDeviceGetName")) return "nvmlDeviceGetName";
    if (!bind(uuid, "nvmlDeviceGetUUID")) return "nvmlDeviceGetUUID";
    if (!bind(memory_info, "nvmlDeviceGetMemoryInfo")) return "nvmlDeviceGetMemoryInfo";
    if (!bind(pci_info, "nvmlDeviceGetPciInfo_v3")) return "nvmlDeviceGetPciInfo_v3";
    if (!bind(utilization, "nvmlDeviceGetUtilizationRates")) return "nvmlDeviceGetUtilizationRates";
    bind(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
    bind(mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3");
    bind(process_samples, "nvmlDeviceGetProcessUtilization");
    bind(temperature, "nvmlDeviceGetTemperature");
    bind(power_mw, "nvmlDeviceGetPowerUsage");
    bind(compute_capability, "nvmlDeviceGetCudaComputeCapability");
    bind(most_mhz, "nvmlDeviceGetMaxClockInfo");
    bind(cores, "nvmlDeviceGetNumGpuCores");
    bind(bus_width_bits, "nvmlDeviceGetMemoryBusWidth");
    return {};
  }

  std::string explain(Return code) const {
    const char* text = error_string(code);
    return fmt::format("{} (NVML error {})", text ? text : "unknown error", code);
  }

  // The list may grow between the question for its length and that for itself.
  Result<std::vector<ProcessInfo>> processes(ProcessCall call, Device device) const {
    std::vector<ProcessInfo> list(64);
    for (int tries = 0; tries < 4; ++tries) {
      auto count = static_cast<unsigned>(list.size());
      const Return code = call(device, &count, list.data());
      if (code == kSuccess) {
        list.resize(std::min<size_t>(count, list.size()));
        return list;
      }
      if (code != kTooSmall) return fail(ErrorCode::kUnavailable, explain(code));
      list.resize(std::min<size_t>(2 * std::max<size_t>(count, list.size()), kMostProcesses));
    }
    return fail(ErrorCode::kUnavailable, "more processes than can be listed");
  }

  // What each process computed, of the samples that the driver keeps, as a mean.
  std::map<unsigned, int> sm_percents(Device device) const {
    std::map<unsigned, int> percents;
    if (!process_samples) return percents;
    std::vector<ProcessSample> samples(kMostProcesses);
    auto count = static_cast<unsigned>(samples.size());
    if (process_samples(device, samples.data(), &count, 0) != kSuccess) return percents;
    samples.resize(std::min<size_t>(count, samples.size()));
    std::map<unsigned, std::pair<int, int>> sums;
    for (const auto& sample : samples) {
      sums[sample.pid].first += static_cast<int>(std::min(sample.sm, 100u));
      ++sums[sample.pid].second;
    }
    for (const auto& [pid, sum] : sums) percents[pid] = sum.first / sum.second;
    return percents;
  }

  void list_processes(Device device, GpuUse& use) const {
    if (!compute_processes) {
      use.processes_unavailable = "the driver is too old to list them";
      return;
    }
    const auto percents = sm_percents(device);
    // By pid: who computes through MPS is in both lists.
    std::map<unsigned, GpuProcess> found;
    for (const bool mps : {false, true}) {
      const auto call = mps ? mps_processes : compute_processes;
      if (!call) continue;
      const auto list = processes(call, device);
      if (!list && !mps) use.processes_unavailable = list.error().message;
      if (!list) continue;
      for (const auto& info : *list) {
        auto& process = found[info.pid];
        process.pid = info.pid;
        process.mps = mps;
        if (info.memory != kNotAvailable) process.memory_bytes = info.memory;
        if (const auto percent = percents.find(info.pid); percent != percents.end())
          process.sm_percent = percent->second;
      }
    }
    for (const auto& [pid, process] : found) use.processes.push_back(process);
    std::stable_sort(use.processes.begin(), use.processes.end(), [](const auto& a, const auto& b) {
      return a.memory_bytes.value_or(0) > b.memory_bytes.value_or(0);
    });
  }

  // Of its kind.
  void add_features(Device device, Gpu& gpu) const {
    const auto ask = [](std::optional<uint32_t>& to, auto call, auto... arguments) {
      if (unsigned value = 0; call && call(arguments..., &value) == kSuccess && value > 0)
        to = value;
    };
    if (int major = 0, minor = 0;
        compute_capability && compute_capability(device, &major, &minor) == kSuccess)
      gpu.compute_capability = (10 * major + minor) / 10.0;
    ask(gpu.cores, cores, device);
    ask(gpu.sm_clock_mhz, most_mhz, device, kSmClock);
    ask(gpu.memory_clock_mhz, most_mhz, device, kMemoryClock);
    ask(gpu.bus_width_bits, bus_width_bits, device);
  }

  Gpu describe(unsigned index, Device device) const {
    Gpu gpu{.index = static_cast<int>(index)};
    std::array<char, kNameBytes> text{};
    if (name(device, text.data(), kNameBytes - 1) == kSuccess) gpu.name = text.data();
    text = {};
    if (uuid(device, text.data(), kNameBytes - 1) == kSuccess) gpu.uuid = text.data();
    if (Memory memory{}; memory_info(device, &memory) == kSuccess) {
      gpu.memory_total_bytes = memory.total;
      gpu.memory_free_bytes = memory.free;
    }
    // bus_id has a domain of eight digits; sysfs knows the device under four and lower case.
    if (PciInfo pci{}; pci_info(device, &pci) == kSuccess)
      gpu.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
    if (Utilization rates{}; utilization(device, &rates) == kSuccess)
      gpu.utilisation_percent = static_cast<int>(rates.gpu);
    add_features(device, gpu);
    return gpu;
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::open(const std::string& name) {
  auto library = std::make_unique<Library>();
  library->handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}", dlerror()));
  if (const auto missing = library->resolve(); !missing.empty())
    return fail(ErrorCode::kUnavailable, fmt::format("NVML: {} has no {}", name, missing));
  if (const Return code = library->init(); code != kSuccess)
    return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}", library->explain(code)));
  library->initialised = true;
  return Nvml(std::move(library));
}

Result<std::vector<Gpu>> Nvml::gpus(std::vector<std::string>& warnings) const {
  unsigned count = 0;
  if (const Return code = library_->device_count(&count); code != kSuccess)
    return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}", library_->explain(code)));
  std::vector<Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    if (const Return code = library_->device_by_index(i, &device); code != kSuccess)
      warnings.push_back(fmt::format("GPU {}: {}", i, library_->explain(code)));
    else
      gpus.push_back(library_->describe(i, device));
  }
  return gpus;
}

Result<std::vector<GpuSample>> Nvml::samples(int index, uint64_t since_us) const {
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::kUnavailable, fmt::format("GPU {}: {}", index, why));
  };
  Device device = nullptr;
  if (const Return code = library_->device_by_index(static_cast<unsigned>(index), &device);
      code != kSuccess)
    return refuse(library_->explain(code));
  if (!library_->process_samples) return refuse("the driver is too old to tell what processes use");
  std::vector<ProcessSample> taken(kMostProcesses);
  auto count = static_cast<unsigned>(taken.size());
  const Return code = library_->process_samples(device, taken.data(), &count, since_us);
  if (code == kNotFound) return std::vector<GpuSample>{};  // nobody computed since then
  if (code != kSuccess) return refuse(library_->explain(code));
  std::vector<GpuSample> samples;
  for (size_t i = 0; i < std::min<size_t>(count, taken.size()); ++i)
    if (taken[i].at_us > since_us)
      samples.push_back(
          {taken[i].pid, taken[i].at_us, static_cast<int>(std::min(taken[i].sm, 100u))});
  return samples;
}

bool Nvml::is_lost(int index) const {
  Device device = nullptr;
  Return code = library_->device_by_index(static_cast<unsigned>(index), &device);
  if (Memory memory{}; code == kSuccess) code = library_->memory_info(device, &memory);
  return code == nvml::kGpuIsLost;
}

Result<GpuUse> Nvml::use(int index) const {
  Device device = nullptr;
  if (const Return code = library_->device_by_index(static_cast<unsigned>(index), &device);
      code != kSuccess)
    return fail(ErrorCode::kUnavailable, fmt::format("GPU {}: {}", index, library_->explain(code)));
  GpuUse use{.index = index};
  if (unsigned celsius = 0;
      library_->temperature && library_->temperature(device, kGpuSensor, &celsius) == kSuccess)
    use.temperature_c = static_cast<int>(celsius);
  if (unsigned mw = 0; library_->power_mw && library_->power_mw(device, &mw) == kSuccess)
    use.power_w = mw / 1e3;
  library_->list_processes(device, use);
  return use;
}

}  // namespace tierpilot
