// Folders that a program has closed to itself, as some do with what must not change any more.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/files/listing.h"

namespace tierpilot {

// Never through a link. One that belongs to this process's user may be listed and changed by it
// from then on; all others are left as they are.
inline void open_own_folder(int parent, const char* name) {
  const UniqueFd folder(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid()) return;
  if ((info.st_mode & S_IRWXU) == S_IRWXU) return;
  // Through /proc: fchmod refuses such a handle.
  (void)::chmod(("/proc/self/fd/" + std::to_string(folder.get())).c_str(), S_IRWXU);
}

// The same, and its listing; see list_folder().
inline Listing list_own_folder(int parent, const char* name) {
  open_own_folder(parent, name);
  return list_folder(parent, name);
}

}  // namespace tierpilot
