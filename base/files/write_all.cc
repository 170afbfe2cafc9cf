#include "base/files/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace tierpilot {

Status write_all(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(errno, name);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace tierpilot
