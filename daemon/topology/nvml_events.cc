#include "daemon/topology/nvml_events.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>

#include "daemon/topology/nvml_abi.h"

namespace tierpilot {
namespace {

// The binary interface of nvml.h; nvmlEventSetWait_v2 is there since driver 450.
using nvml::Device, nvml::kGpuIsLost, nvml::kSuccess, nvml::Memory, nvml::Return;
constexpr Return kTimeout = 10;
constexpr unsigned long long kXidCriticalError = 0x8;
constexpr size_t kMostEvents = 64;
using EventSet = struct EventSetOpaque*;

struct EventData {
  Device device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);

}  // namespace

struct NvmlEvents::Library {
  struct Gpu {
    Device device = nullptr;
    std::string uuid;
  };
  void* handle = nullptr;
  bool initialised = false;
  EventSet events = nullptr;
  std::vector<Gpu> gpus;
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*device_count)(unsigned*) = nullptr;
  Return (*device_by_index)(unsigned, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;
  Return (*memory_info)(Device, Memory*) = nullptr;
  Return (*create_events)(EventSet*) = nullptr;
  Return (*free_events)(EventSet) = nullptr;
  Return (*register_events)(Device, unsigned long long, EventSet) = nullptr;
  Return (*wait_events)(EventSet, EventData*, unsigned) = nullptr;

  ~Library() {
    if (events) free_events(events);
    if (initialised) shutdown();
    if (handle) dlclose(handle);
  }

  // Names the first function that is missing; empty when all are there.
  std::string resolve() {
    std::string missing;
    const auto bind = [&](auto& function, const char* symbol) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
      if (!function && missing.empty()) missing = symbol;
    };
    bind(init, "nvmlInit_v2");
    bind(shutdown, "nvmlShutdown");
    bind(error_string, "nvmlErrorString");
    bind(device_count, "nvmlDeviceGetCount_v2");
    bind(device_by_index, "nvmlDeviceGetHandleByIndex_v2");
    bind(uuid, "nvmlDeviceGetUUID");
    bind(memory_info, "nvmlDeviceGetMemoryInfo");
    bind(create_events, "nvmlEventSetCreate");
    bind(free_events, "nvmlEventSetFree");
    bind(register_events, "nvmlDeviceRegisterEvents");
    bind(wait_events, "nvmlEventSetWait_v2");
    return missing;
  }

  std::string explain(Return code) const {
    const char* text = error_string(code);
    return fmt::format("{} (NVML error {})", text ? text : "unknown error", code);
  }

  Status start(std::vector<std::string>& warnings) {
    if (const Return code = init(); code != kSuccess)
      return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}", explain(code)));
    initialised = true;
    if (const Return code = create_events(&events); code != kSuccess)
      return fail(ErrorCode::kUnavailable, fmt::format("NVML: events: {}", explain(code)));
    unsigned count = 0;
    if (const Return code = device_count(&count); code != kSuccess)
      return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}", explain(code)));
    for (unsigned i = 0; i < count; ++i) add(i, warnings);
    if (gpus.empty()) return fail(ErrorCode::kUnavailable, "NVML: no GPU answers");
    return {};
  }

  void add(unsigned index, std::vector<std::string>& warnings) {
    constexpr unsigned kUuidBytes = 96;
    Device device = nullptr;
    std::array<char, kUuidBytes> name{};
    if (device_by_index(index, &device) != kSuccess ||
        uuid(device, name.data(), kUuidBytes - 1) != kSuccess)
      return;
    if (const Return code = register_events(device, kXidCriticalError, events); code != kSuccess)
      warnings.push_back(fmt::format("GPU {}: Xid errors are not told: {}", index, explain(code)));
    gpus.push_back({device, name.data()});
  }
};

NvmlEvents::NvmlEvents(std::unique_ptr<Library> library) : library_(std::move(library)) {}
NvmlEvents::NvmlEvents(NvmlEvents&&) noexcept = default;
NvmlEvents& NvmlEvents::operator=(NvmlEvents&&) noexcept = default;
NvmlEvents::~NvmlEvents() = default;

Result<NvmlEvents> NvmlEvents::open(const std::string& name, std::vector<std::string>& warnings) {
  auto library = std::make_unique<Library>();
  library->handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) return fail(ErrorCode::kUnavailable, fmt::format("NVML: {}", dlerror()));
  if (const auto missing = library->resolve(); !missing.empty())
    return fail(ErrorCode::kUnavailable, fmt::format("NVML: {} has no {}", name, missing));
  if (auto started = library->start(warnings); !started) return tl::unexpected(started.error());
  return NvmlEvents(std::move(library));
}

std::vector<XidEvent> NvmlEvents::wait(unsigned timeout_ms) {
  std::vector<XidEvent> told;
  Return code = kSuccess;
  for (size_t taken = 0; taken < kMostEvents; ++taken) {
    EventData event{};
    code = library_->wait_events(library_->events, &event, taken == 0 ? timeout_ms : 0);
    if (code != kSuccess) break;
    for (const auto& gpu : library_->gpus)
      if (gpu.device == event.device && (event.type & kXidCriticalError))
        told.push_back({gpu.uuid, event.data});
  }
  // It came back at once: whoever calls again must not spin.
  if (told.empty() && code != kTimeout && code != kSuccess)
    std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
  return told;
}

std::vector<std::string> NvmlEvents::lost() const {
  std::vector<std::string> lost;
  for (const auto& gpu : library_->gpus)
    if (Memory memory{}; library_->memory_info(gpu.device, &memory) == kGpuIsLost)
      lost.push_back(gpu.uuid);
  return lost;
}

std::vector<std::string> NvmlEvents::gpus() const {
  std::vector<std::string> gpus;
  for (const auto& gpu : library_->gpus) gpus.push_back(gpu.uuid);
  return gpus;
}

}  // namespace tierpilot
