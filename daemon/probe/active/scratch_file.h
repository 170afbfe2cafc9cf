// A nameless file in a directory tier.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "daemon/probe/active/memory.h"

namespace tierpilot {

class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::string& directory);
  // From and to the same place in the file, `chunk` bytes a call.
  Status write(const TierMemory& from, size_t begin, size_t end, size_t chunk);
  Status read(const TierMemory& into, size_t begin, size_t end, size_t chunk);
  Status sync();
  // From the page cache, once it has been synced.
  Status drop();
  // So that a write finds no blocks allocated for it.
  Status empty();
  // kUnavailable when the page cache kept the file all the same.
  Status check_cold(size_t bytes) const;

 private:
  tl::unexpected<Error> failed(const char* what, int err) const;
  ScratchFile(UniqueFd fd, std::string directory, DirectoryAccess access)
      : fd_(std::move(fd)), directory_(std::move(directory)), access_(access) {}
  UniqueFd fd_;
  std::string directory_;
  DirectoryAccess access_;
};

}  // namespace tierpilot
