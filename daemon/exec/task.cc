#include "daemon/exec/task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "daemon/exec/memory_policy.h"

namespace tierpilot {
namespace {

constexpr int kMaxCpu = 65535;

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

std::string complaint(const TaskLaunch& task) {
  if (task.argv.empty() || task.argv[0].empty()) return "the command is empty";
  if (std::any_of(task.argv.begin(), task.argv.end(), has_nul))
    return "an argument contains a NUL byte";
  for (const auto& [name, value] : task.env) {
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value))
      return fmt::format(
          "'{}' is not an environment variable: a name needs at least one character "
          "and no '=', and neither name nor value a NUL byte",
          name);
  }
  for (const auto* directory : {&task.working_directory, &task.log_directory}) {
    if (!directory->starts_with('/') || has_nul(*directory))
      return fmt::format("directory '{}' is not an absolute path", *directory);
  }
  for (const int cpu : task.cpus) {
    if (cpu < 0 || cpu > kMaxCpu) return fmt::format("{} is not a CPU number", cpu);
    if (std::count(task.cpus.begin(), task.cpus.end(), cpu) > 1)
      return fmt::format("CPU {} is named twice", cpu);
  }
  for (const int node : task.memory_nodes)
    if (node < 0 || node > kMaxNumaNode) return fmt::format("{} is not a NUMA node", node);
  if (const auto& user = task.user;
      user && (user->uid == 0 || user->gid == 0 || user->uid == ::geteuid()))
    return fmt::format("user {} with group {} is root's or the daemon's", user->uid, user->gid);
  for (const auto& file : task.given)
    if (!file.starts_with('/') || has_nul(file))
      return fmt::format("file '{}' is not an absolute path", file);
  for (const auto& folder : task.given_folders)
    if (!folder.starts_with('/') || has_nul(folder))
      return fmt::format("folder '{}' is not an absolute path", folder);
  if (task.memory_limit_bytes == 0) return "the memory limit is 0 bytes";
  if (task.time_limit_ms < 0) return fmt::format("the time limit is {} ms", task.time_limit_ms);
  return {};
}

}  // namespace

Status check(const TaskLaunch& task) {
  const std::string why = complaint(task);
  if (why.empty()) return {};
  return fail(ErrorCode::kInvalid, fmt::format("task {}: {}", task.task_id, why));
}

}  // namespace tierpilot
