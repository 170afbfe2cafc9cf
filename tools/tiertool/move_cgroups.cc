#include "tools/tiertool/move_cgroups.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/tiertool/move_rows.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

const std::string kRoot = "/sys/fs/cgroup";

void append(ordered_json& rows, const std::string& cgroup, const ordered_json& more) {
  for (const auto& row : more) {
    rows.push_back({{"cgroup", cgroup}});
    rows.back().update(row);
  }
}

}  // namespace

Result<std::vector<NamedCgroup>> find_cgroups(const std::vector<std::string>& paths) {
  std::vector<NamedCgroup> found;
  for (const auto& path : paths) {
    const auto below = path.starts_with(kRoot)
                           ? std::filesystem::path(path)
                           : kRoot / std::filesystem::path(path).relative_path();
    struct stat info {};
    if (::stat(below.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      return fail(ErrorCode::kInvalid,
                  fmt::format("--cgroup {}: {} is no directory", path, below.native()));
    // The root has no such file, and is charged all the same.
    if (!std::filesystem::exists(below / "memory.stat"))
      return fail(
          ErrorCode::kInvalid,
          fmt::format("--cgroup {}: without the memory controller no page is charged to it: "
                      "write +memory to cgroup.subtree_control of the cgroup above",
                      path));
    found.push_back({path, info.st_ino});
  }
  return found;
}

void add_cgroups(ordered_json& value, const PassiveProbe& probe,
                 const std::vector<NamedCgroup>& cgroups) {
  ordered_json moves = ordered_json::array(), faults = ordered_json::array();
  bool timed = false;
  for (const auto& cgroup : cgroups) {
    const auto seen = probe.cgroup_memory(cgroup.id);
    if (seen.migration) append(moves, cgroup.path, migration_rows(*seen.migration, ""));
    if (seen.migration && seen.migration->lost_calls > 0)
      value["cgroup_lost_calls"][cgroup.path] = seen.migration->lost_calls;
    if (seen.migration && seen.migration->watched_pages_share)
      value["cgroup_watched_pages_share"][cgroup.path] = *seen.migration->watched_pages_share;
    if (!seen.fault_time) continue;
    timed = true;
    append(faults, cgroup.path, fault_rows(*seen.fault_time));
  }
  value["cgroups"] = std::move(moves);
  if (timed) value["cgroup_fault_times"] = std::move(faults);
}

}  // namespace tierpilot::tiertool
