// A nameless file in a directory tier.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "daemon/probe/active/memory.h"

namespace tierpilot {

class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::string& directory);
  // Replaces the contents; they are on stable storage and out of the page cache when it returns.
  Status write_through(const TierMemory& from);
  Status read_cold(const TierMemory& into);
  // kUnavailable when the page cache kept the file all the same.
  Status check_cold(size_t bytes) const;

 private:
  ScratchFile(UniqueFd fd, std::string directory, DirectoryAccess access)
      : fd_(std::move(fd)), directory_(std::move(directory)), access_(access) {}
  UniqueFd fd_;
  std::string directory_;
  DirectoryAccess access_;
};

}  // namespace tierpilot
