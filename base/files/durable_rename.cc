#include "base/files/durable_rename.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/unique_fd.h"

namespace tierpilot {

Status rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return fail_errno(errno, fmt::format("'{}': rename", to.string()));
  // Of a bare name that is empty.
  const std::filesystem::path folder = to.has_parent_path() ? to.parent_path() : ".";
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0)
    return fail_errno(errno, fmt::format("directory '{}': fsync", folder.string()));
  return {};
}

}  // namespace tierpilot
