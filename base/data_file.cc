#include "base/data_file.h"

#include <fmt/format.h>

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

// From the folder of the running program, installed (PREFIX/bin, PREFIX/libexec/tierpilot) or built
// (BUILD/coordinator, BUILD/tools/NAME).
constexpr const char* kDataNearby[] = {"../share/tierpilot", "../../share/tierpilot",
                                       "../../policies/weights", "../policies/weights"};

}  // namespace

fs::path own_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

Result<fs::path> find_data_file(const std::string& name) {
  std::string looked;
  for (const char* nearby : kDataNearby) {
    const fs::path file = (own_folder() / nearby / name).lexically_normal();
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file;
    looked += (looked.empty() ? "" : ", ") + file.parent_path().string();
  }
  return fail(ErrorCode::kNotFound, fmt::format("file {} was not found in {}", name, looked));
}

}  // namespace tierpilot
