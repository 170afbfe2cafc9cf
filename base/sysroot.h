// Every read of /sys and /proc goes through a root, so a test can be any machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot {

class Sysroot {
 public:
  explicit Sysroot(std::filesystem::path root = "/") : root_(std::move(root)) {}

  // `path` is absolute as on the real machine: "/sys/devices/system/node/online".
  std::filesystem::path resolve(const std::filesystem::path& path) const {
    return root_ / path.relative_path();
  }
  bool exists(const std::filesystem::path& path) const;
  // Whole text without trailing newline. Larger files are refused.
  Result<std::string> read(const std::filesystem::path& path, size_t most_bytes = 1 << 20) const;
  Result<int64_t> read_int(const std::filesystem::path& path) const;
  // "0-3,8" as {0,1,2,3,8}; empty text is an empty list.
  Result<std::vector<int>> read_id_list(const std::filesystem::path& path) const;
  // Names in a directory, sorted; a missing directory has none, nor has one that cannot be read.
  std::vector<std::string> list(const std::filesystem::path& path) const;
  // The same, for whom what cannot be read is not the same as what is not there.
  Result<std::vector<std::string>> try_list(const std::filesystem::path& path) const;

 private:
  std::filesystem::path root_;
};

// Parses the kernel's list format "0-3,8"; ids over 65,535 are refused.
Result<std::vector<int>> parse_id_list(std::string_view text);
std::string format_id_list(const std::vector<int>& ids);

}  // namespace tierpilot
