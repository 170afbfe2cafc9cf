#include "tools/cluster/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <vector>

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

// From the folder of the running program, installed (PREFIX/bin, PREFIX/libexec/tierpilot) or built
// (BUILD/tools/NAME).
constexpr const char* kNearby[] = {".",
                                   "../bin",
                                   "../sbin",
                                   "../../bin",
                                   "../../sbin",
                                   "../../coordinator",
                                   "../../daemon",
                                   "../tierload",
                                   "../tierctl",
                                   "../lab",
                                   "../trainer",
                                   "../libexec/tierpilot"};

std::vector<fs::path> folders() {
  std::vector<fs::path> result;
  const fs::path self = own_folder();
  if (!self.empty())
    for (const char* nearby : kNearby) result.push_back((self / nearby).lexically_normal());
  const char* path = std::getenv("PATH");
  std::istringstream list(path ? path : "");
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) result.emplace_back(folder);
  return result;
}

}  // namespace

Result<fs::path> find_program(const std::string& name) {
  for (const auto& folder : folders()) {
    const fs::path program = folder / name;
    std::error_code ignored;
    if (fs::is_regular_file(program, ignored) && access(program.c_str(), X_OK) == 0) return program;
  }
  return fail(ErrorCode::kNotFound,
              fmt::format("program {} was found neither beside this one, in or near '{}', nor in "
                          "PATH: reinstall Tierpilot; in a source tree `ninja -C build` builds it",
                          name, own_folder().string()));
}

}  // namespace tierpilot
