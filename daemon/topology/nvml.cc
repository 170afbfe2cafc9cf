#include "daemon/topology/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

namespace tierpilot {
namespace {

// The binary interface of nvml.h, unchanged since driver 331 (pci_v3: driver 384).
using Return = int;
constexpr Return kSuccess = 0;
constexpr unsigned kNameBytes = 96;
using Device = struct DeviceOpaque*;

struct Memory {
  unsigned long long total, free, used;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Utilization {
  unsigned gpu, memory;
};
static_assert(sizeof(Memory) == 24 && sizeof(PciInfo) == 68 && sizeof(Utilization) == 8);

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
    return {};
  }

  std::string explain(Return code) const {
    const char* text = error_string(code);
    return fmt::format("{} (NVML error {})", text ? text : "unknown error", code);
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

}  // namespace tierpilot
