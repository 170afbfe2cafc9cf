#include "swap/device/host_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace tierpilot::swap {
namespace {

namespace fs = std::filesystem;

int64_t available_of_machine(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kib = 0;
    if (name == "MemAvailable:") return file >> kib ? kib * 1024 : 0;
    file.ignore(256, '\n');
  }
  return 0;
}

// Its own and all above it; the topmost has no limit.
fs::path cgroup_of_process(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(4);
  return {};
}

}  // namespace

int64_t available_memory_bytes(const std::string& root) {
  auto least = available_of_machine(root);
  const fs::path top = root + "/sys/fs/cgroup";
  for (auto group = cgroup_of_process(root); !group.empty(); group = group.parent_path()) {
    std::ifstream limit_file(top / group / "memory.max"), used_file(top / group / "memory.current");
    int64_t limit = 0, used = 0;
    if (limit_file >> limit && used_file >> used)
      least = std::min(least, std::max<int64_t>(limit - used, 0));
  }
  return least;
}

}  // namespace tierpilot::swap
