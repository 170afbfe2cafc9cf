// A nameless file on a tier: in its directory, or in its node's memory.
#pragma once

#include <span>
#include <string>

#include "base/unique_fd.h"
#include "daemon/probe/memory/memory.h"

namespace tierpilot {

class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::string& directory);
  // tmpfs memory that is bound to the node. kUnavailable where there is none.
  static Result<ScratchFile> create_on_node(int node, size_t bytes);
  // Room for so many bytes, before they come.
  Status allocate(size_t bytes);
  // Whole `buffer` bytes at this place of the file.
  Status write(std::span<const std::byte> buffer, size_t at);
  Status read(std::span<std::byte> buffer, size_t at);
  Status sync();
  // What making a name in its directory durable takes; nothing for memory. The file stays nameless.
  Status sync_name();
  // From the page cache, once it has been synced.
  Status drop();
  // So that a write finds no blocks allocated for it.
  Status empty();
  // kUnavailable when the page cache kept the file all the same.
  Status check_cold(size_t bytes) const;

 private:
  tl::unexpected<Error> failed(const char* what, int err) const;
  ScratchFile(UniqueFd fd, std::string where, DirectoryAccess access)
      : fd_(std::move(fd)), where_(std::move(where)), access_(access) {}
  UniqueFd fd_;
  UniqueFd directory_;  // none for memory
  std::string where_;
  DirectoryAccess access_;
};

}  // namespace tierpilot
