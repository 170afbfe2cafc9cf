#include "coordinator/core/queue/queue_load.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace tierpilot {
namespace {

// Of a task without any words, in the book, the queue and the indexes of both.
constexpr uint64_t kBareTaskBytes = 1024;
constexpr uint64_t kStringBytes = sizeof(std::string);

Status refuse(const std::string& who, const std::string& has, const std::string& most,
              const char* key) {
  return fail(ErrorCode::kExhausted,
              fmt::format("{} with this submit {}, at most {} are taken (queue.{} of the "
                          "coordinator): wait until some have ended, or cancel them",
                          who, has, most, key));
}

Status check(const std::string& who, const QueueLoad::Load& load, uint64_t most_tasks,
             uint64_t most_bytes, const char* tasks_key, const char* bytes_key) {
  if (load.tasks > most_tasks)
    return refuse(who, fmt::format("{} tasks that have not ended", load.tasks),
                  std::to_string(most_tasks), tasks_key);
  if (load.bytes > most_bytes)
    return refuse(who, fmt::format("{} of tasks that have not ended", format_bytes(load.bytes)),
                  format_bytes(most_bytes), bytes_key);
  return {};
}

}  // namespace

uint64_t task_bytes(const TaskSpec& spec) {
  uint64_t bytes = kBareTaskBytes + spec.name.size() + spec.node.size() + spec.memory_tier.size();
  bytes += spec.share.model_card.size();
  for (const auto& argument : spec.argv) bytes += kStringBytes + argument.size();
  for (const auto& [name, value] : spec.env) bytes += 2 * kStringBytes + name.size() + value.size();
  for (const auto& use : spec.datasets) bytes += sizeof(DatasetUse) + use.dataset.size();
  for (const auto& parent : spec.after) bytes += 3 * kStringBytes + parent.size();
  return bytes;
}

void QueueLoad::add(const std::string& user, const Load& load) {
  for (auto* sum : {&all_, &by_user_[user]}) {
    sum->tasks += load.tasks;
    sum->bytes += load.bytes;
  }
}

void QueueLoad::remove(const std::string& user, const Load& load) {
  const auto of_user = by_user_.find(user);
  for (auto* sum : {&all_, &of_user->second}) {
    sum->tasks -= load.tasks;
    sum->bytes -= load.bytes;
  }
  if (of_user->second.tasks == 0) by_user_.erase(of_user);
}

Status QueueLoad::room_for(const QueueLimits& limits, const std::string& user,
                           const Load& more) const {
  const auto with_more = [&](const Load& load) {
    return Load{load.tasks + more.tasks, load.bytes + more.bytes};
  };
  const auto of_user = by_user_.find(user);
  if (auto ok = check(fmt::format("user '{}' has", user),
                      with_more(of_user == by_user_.end() ? Load{} : of_user->second),
                      limits.tasks_per_user, limits.bytes_per_user, "max_tasks_per_user",
                      "max_bytes_per_user");
      !ok)
    return ok;
  return check("the cluster has", with_more(all_), limits.tasks, limits.bytes, "max_tasks",
               "max_bytes");
}

}  // namespace tierpilot
