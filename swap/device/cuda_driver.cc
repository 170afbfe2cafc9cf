#include "swap/device/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace tierpilot::swap {

Result<CudaDriver> CudaDriver::open(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(ErrorCode::kUnavailable,
                fmt::format("the CUDA driver cannot be loaded: {}; is it installed?", dlerror()));
  CudaDriver driver;
  std::string_view missing;
  const auto bind = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, symbol));
    if (!function && missing.empty()) missing = symbol;
  };
  bind(driver.init, "cuInit");
  bind(driver.error_string, "cuGetErrorString");
  bind(driver.device_count, "cuDeviceGetCount");
  bind(driver.device, "cuDeviceGet");
  bind(driver.retain, "cuDevicePrimaryCtxRetain");
  bind(driver.release, "cuDevicePrimaryCtxRelease_v2");
  bind(driver.push, "cuCtxPushCurrent_v2");
  bind(driver.pop, "cuCtxPopCurrent_v2");
  bind(driver.stream_create, "cuStreamCreate");
  bind(driver.stream_destroy, "cuStreamDestroy_v2");
  bind(driver.stream_synchronize, "cuStreamSynchronize");
  bind(driver.event_create, "cuEventCreate");
  bind(driver.event_destroy, "cuEventDestroy_v2");
  bind(driver.event_record, "cuEventRecord");
  bind(driver.event_synchronize, "cuEventSynchronize");
  bind(driver.copy_out, "cuMemcpyDtoHAsync_v2");
  bind(driver.copy_in, "cuMemcpyHtoDAsync_v2");
  bind(driver.host_register, "cuMemHostRegister_v2");
  bind(driver.host_unregister, "cuMemHostUnregister");
  bind(driver.allocate, "cuMemAlloc_v2");
  bind(driver.free, "cuMemFree_v2");
  if (!missing.empty())
    return fail(ErrorCode::kUnavailable,
                fmt::format("the CUDA driver {} has no {}: version 11 or later is needed", library,
                            missing));
  return driver;
}

Status CudaDriver::checked(Code code, const std::string& what) const {
  if (code == 0) return {};
  const char* said = nullptr;
  error_string(code, &said);
  return fail(ErrorCode::kUnavailable,
              fmt::format("{}: {}", what, said ? said : fmt::format("CUDA error {}", code)));
}

}  // namespace tierpilot::swap
