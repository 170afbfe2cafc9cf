// Private folders that never outlive their owner for long: removed with the object, or by the next
// start when the owner was killed.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot::demo {

inline constexpr const char* kFolderPrefix = "tierpilot-demo-";

class RuntimeFolder {
 public:
  // Makes PARENT/tierpilot-demo-XXXXXX, mode 0700, locked while this process or a child that
  // inherited it lives.
  static Result<RuntimeFolder> create(const std::filesystem::path& parent);
  // Removes folders of ours in `parent` that no living process has locked. Younger ones than
  // `spared` may be about to be locked.
  static void remove_stale(const std::filesystem::path& parent,
                           std::chrono::seconds spared = std::chrono::seconds(10));

  RuntimeFolder(RuntimeFolder&&) = default;
  ~RuntimeFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  RuntimeFolder(std::filesystem::path path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  UniqueFd lock_;  // of the folder itself
};

// The first of $TMPDIR, /tmp and /var/tmp that is on a disk: a slow tier in a tmpfs would be none.
// Where all are tmpfs, the first of them.
std::filesystem::path disk_folder();

}  // namespace tierpilot::demo
