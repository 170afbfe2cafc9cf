#include "policies/placement/networks/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/data_file.h"
#include "policies/learning/blas_kernels.h"

namespace tierpilot {
namespace {

constexpr const char* kFile = "libtierpilot-networks.so";
// From the folder of the running program, installed (PREFIX/bin, PREFIX/libexec/tierpilot) or built
// (BUILD/coordinator, BUILD/tools/NAME, tests).
constexpr const char* kLibraryNearby[] = {"../lib/tierpilot",  "../../lib/tierpilot",
                                          "../policies",       "../../policies",
                                          "../../../policies", "../../../../policies"};

std::filesystem::path find_library() {
  for (const char* nearby : kLibraryNearby) {
    const auto file = (own_folder() / nearby / kFile).lexically_normal();
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return file;
  }
  throw std::runtime_error(
      fmt::format("{} was not found near '{}': reinstall Tierpilot; in a source tree `ninja -C "
                  "build` builds it",
                  kFile, own_folder().string()));
}

const NetworkLibrary& load() {
  select_blas_kernels();
  const auto file = find_library();
  // Never unloaded: libtorch has threads and hooks of its own.
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* const found = handle == nullptr ? nullptr : dlsym(handle, "tierpilot_networks");
  if (found == nullptr)
    throw std::runtime_error(fmt::format("{} cannot be loaded: {}", file.string(), dlerror()));
  const auto& library = *static_cast<const NetworkLibrary*>(found);
  // A package may be replaced while its programs run.
  if (library.version != std::string_view(TIERPILOT_VERSION))
    throw std::runtime_error(fmt::format("{} is of Tierpilot {}, this program of {}: restart it",
                                         file.string(), library.version, TIERPILOT_VERSION));
  return library;
}

}  // namespace

const NetworkLibrary& network_library() {
  static const NetworkLibrary& loaded = load();
  return loaded;
}

}  // namespace tierpilot
