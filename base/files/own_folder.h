// Folders that a program has closed to itself, as some do with what must not change any more.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/files/listing.h"

namespace tierpilot {

// Never through a link. What `mode` names, of its owner, is allowed from then on too, where it
// belongs to this process's user; all others are left as they are.
inline void open_own_folder(int parent, const char* name, mode_t mode = S_IRWXU) {
  const UniqueFd folder(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid()) return;
  if ((info.st_mode & mode) == mode) return;
  // Through /proc: fchmod refuses such a handle.
  (void)::chmod(("/proc/self/fd/" + std::to_string(folder.get())).c_str(),
                (info.st_mode & 07777) | mode);
}

// As list_folder(), and where that is denied only because its owner is.
inline Listing list_own_folder(int parent, const char* name) {
  auto listing = list_folder(parent, name);
  if (listing || errno != EACCES) return listing;
  open_own_folder(parent, name, S_IRUSR | S_IXUSR);
  return list_folder(parent, name);
}

}  // namespace tierpilot
