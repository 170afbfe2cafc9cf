#include "daemon/agent/node/folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

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
  return passable_above(folder);
}

Status passable_above(const fs::path& folder) {
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

Status own_folder(const fs::path& folder, mode_t mode) {
  const auto& name = folder.native();
  const auto above = folder.parent_path();
  struct stat info {};
  if (::stat(above.c_str(), &info) != 0) return fail_errno(errno, above.native());
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return fail(ErrorCode::kDenied,
                fmt::format("folder '{}' belongs to user {}, who could put something in the place "
                            "of '{}': chown it to user {}, whom tierpilotd runs as",
                            above.native(), info.st_uid, name, ::geteuid()));
  if (::mkdir(name.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_errno(errno, fmt::format("folder '{}' cannot be made", name));
  const UniqueFd opened(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened && (errno == ENOTDIR || errno == ELOOP))
    return fail(ErrorCode::kDenied,
                fmt::format("'{}' is a link or a file: tierpilotd makes a folder of its own there, "
                            "see who has put it there and remove it",
                            name));
  if (!opened || ::fstat(opened.get(), &info) != 0)
    return fail_errno(errno, fmt::format("folder '{}'", name));
  if (info.st_uid != ::geteuid())
    return fail(ErrorCode::kDenied,
                fmt::format("folder '{}' belongs to user {}, not to user {}, whom tierpilotd runs "
                            "as: remove it, or choose another directory",
                            name, info.st_uid, ::geteuid()));
  if (::fchmod(opened.get(), mode) != 0)
    return fail_errno(errno, fmt::format("folder '{}' cannot get mode {:o}", name, mode));
  return {};
}

}  // namespace tierpilot::agent
