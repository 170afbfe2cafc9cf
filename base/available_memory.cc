#include "base/available_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

namespace tierpilot {
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

fs::path cgroup_of_process(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::/")) return line.substr(4);
  return {};
}

// What its limit leaves; no limit: the most there is.
int64_t left_of(const fs::path& cgroup) {
  std::ifstream limit_file(cgroup / "memory.max"), used_file(cgroup / "memory.current");
  int64_t limit = 0, used = 0;
  if (limit_file >> limit && used_file >> used) return std::max<int64_t>(limit - used, 0);
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t available_memory_bytes(const std::string& root) {
  // The topmost that is to be seen is a container's own.
  const fs::path top = root + "/sys/fs/cgroup";
  auto least = std::min(available_of_machine(root), left_of(top));
  for (auto group = cgroup_of_process(root); !group.empty(); group = group.parent_path())
    least = std::min(least, left_of(top / group));
  return least;
}

}  // namespace tierpilot
