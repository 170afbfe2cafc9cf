#include "base/process/available_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

// Of a file of names and numbers, one a line.
std::optional<int64_t> number_of(const fs::path& path, const std::string& wanted) {
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    int64_t number = 0;
    if (name == wanted) return file >> number ? std::optional(number) : std::nullopt;
    file.ignore(256, '\n');
  }
  return std::nullopt;
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
  if (!(limit_file >> limit && used_file >> used)) return std::numeric_limits<int64_t>::max();
  const auto stat = cgroup / "memory.stat";
  const int64_t cached =
      number_of(stat, "inactive_file").value_or(0) + number_of(stat, "active_file").value_or(0);
  return std::max<int64_t>(limit - used + std::min(cached, used), 0);
}

}  // namespace

std::optional<int64_t> available_memory_bytes(const std::string& root) {
  const auto of_machine_kib = number_of(root + "/proc/meminfo", "MemAvailable:");
  if (!of_machine_kib) return std::nullopt;
  // The topmost that is to be seen is a container's own.
  const fs::path top = root + "/sys/fs/cgroup";
  auto least = std::min(*of_machine_kib * 1024, left_of(top));
  for (auto group = cgroup_of_process(root); !group.empty(); group = group.parent_path())
    least = std::min(least, left_of(top / group));
  return least;
}

}  // namespace tierpilot
