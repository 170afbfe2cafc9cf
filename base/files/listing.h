// A folder that is open for listing.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <memory>

#include "base/unique_fd.h"

namespace tierpilot {

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};
using Listing = std::unique_ptr<DIR, CloseListing>;

// Never through a link. Nothing, and errno: it cannot be listed, or is no folder.
inline Listing list_folder(int parent, const char* name) {
  UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Listing listing(fd ? ::fdopendir(fd.get()) : nullptr);
  if (listing) (void)fd.release();
  return listing;
}

inline bool is_dots(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

}  // namespace tierpilot
