#include "daemon/agent/tasks/task_env.h"

#include <fmt/format.h>

#include <map>

#include "base/dataset_env.h"
#include "base/sysroot.h"

namespace tierpilot::agent {

Status check_dataset_env(const std::vector<ServeItem>& datasets) {
  std::map<std::string, std::string> named;
  for (const auto& need : datasets) {
    const auto [other, fresh] = named.emplace(dataset_env_name(need.name), need.name);
    if (!fresh)
      return fail(ErrorCode::kInvalid,
                  fmt::format("datasets '{}' and '{}' would both be {}: rename one", other->second,
                              need.name, other->first));
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> task_environment(
    const Assignment& assignment, const std::vector<ServedItem>& datasets,
    const std::vector<int>& cpus, const std::string& node, const std::filesystem::path& work_dir) {
  std::map<std::string, std::string> env{
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"LANG", "C.UTF-8"},
      {"HOME", work_dir.native()},
  };
  for (const auto& [name, value] : assignment.env) env[name] = value;
  env["TMPDIR"] = work_dir.native();
  env["TIERPILOT_TASK_ID"] = std::to_string(assignment.attempt.task);
  env["TIERPILOT_ATTEMPT"] = std::to_string(assignment.attempt.attempt);
  env["TIERPILOT_NODE"] = node;
  env["TIERPILOT_UNITS"] = std::to_string(assignment.units);
  env["TIERPILOT_CPUS"] = format_id_list(cpus);
  for (const auto& dataset : datasets) env[dataset_env_name(dataset.name)] = dataset.path;
  return {env.begin(), env.end()};
}

}  // namespace tierpilot::agent
