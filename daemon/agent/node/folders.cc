#include "daemon/agent/node/folders.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

Status make(const fs::path& folder, mode_t mode) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail_errno(error.value(), fmt::format("folder '{}'", folder.native()));
  if (::chmod(folder.c_str(), mode) != 0)
    return fail_errno(errno,
                      fmt::format("folder '{}' cannot get mode {:o}", folder.native(), mode));
  return {};
}

}  // namespace

Status let_others_pass(const fs::path& folder) {
  if (auto made = make(folder, 0711); !made) return made;
  for (auto above = folder.parent_path(); above != above.root_path(); above = above.parent_path()) {
    struct stat info {};
    if (::stat(above.c_str(), &info) != 0) return fail_errno(errno, above.native());
    if (!(info.st_mode & S_IXOTH))
      return fail(ErrorCode::kDenied,
                  fmt::format("folder '{}' keeps tasks with other users (tasks.run_as) away from "
                              "'{}': chmod o+x it, or choose another folder",
                              above.native(), folder.native()));
  }
  return {};
}

Status keep_to_oneself(const fs::path& folder) {
  return make(folder, 0700);
}

}  // namespace tierpilot::agent
