// Where tests keep files that are synced to disk again and again: most would wait for nothing else.
#pragma once

#include <filesystem>

namespace tierpilot::testing {

// Memory, where there is room.
inline std::filesystem::path fast_folder() {
  constexpr uintmax_t kRoom_bytes = uintmax_t{1} << 30;
  const std::filesystem::path memory = "/dev/shm";
  std::error_code error;
  const auto room = std::filesystem::space(memory, error);
  return !error && room.available >= kRoom_bytes ? memory : std::filesystem::temp_directory_path();
}

}  // namespace tierpilot::testing
