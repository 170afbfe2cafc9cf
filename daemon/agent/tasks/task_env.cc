#include "daemon/agent/tasks/task_env.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/dataset_env.h"
#include "base/sysroot.h"
#include "model/checkpoint_name.h"

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

// What PyTorch's init_process_group() and its kin look for.
static void put_rank(const RankAssignment& rank, std::map<std::string, std::string>& env) {
  env["RANK"] = std::to_string(rank.rank);
  env["WORLD_SIZE"] = std::to_string(rank.world_size);
  env["LOCAL_RANK"] = std::to_string(rank.place.local_rank);
  env["LOCAL_WORLD_SIZE"] = std::to_string(rank.place.local_world_size);
  env["NODE_RANK"] = std::to_string(rank.place.node_rank);
  env["MASTER_ADDR"] = rank.master_address;
  env["MASTER_PORT"] = std::to_string(rank.master_port);
  env["TIERPILOT_GANG"] = std::to_string(rank.gang);
  env["TIERPILOT_RESTARTS"] = std::to_string(rank.restarts);
  // Ranks without GPUs must not find those of others.
  env["CUDA_VISIBLE_DEVICES"] = fmt::format("{}", fmt::join(rank.place.gpus, ","));
}

static void put_checkpoint(const ServedItem& checkpoint, std::map<std::string, std::string>& env) {
  env["TIERPILOT_CHECKPOINT"] = checkpoint.path;
  if (const auto name = parse_checkpoint_name(checkpoint.name))
    env["TIERPILOT_CHECKPOINT_ITERATION"] = std::to_string(name->iteration);
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
  if (assignment.rank) put_rank(*assignment.rank, env);
  for (const auto& dataset : datasets) {
    env[dataset_env_name(dataset.name)] = dataset.path;
    if (dataset.name == assignment.checkpoint) put_checkpoint(dataset, env);
  }
  return {env.begin(), env.end()};
}

}  // namespace tierpilot::agent
