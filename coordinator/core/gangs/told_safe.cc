#include "coordinator/core/gangs/told_safe.h"

#include <utility>

#include "base/log.h"
#include "coordinator/store/records.h"

namespace tierpilot {

Status ToldSafe::begin() {
  const auto known = records::safe_checkpoints(state_.store.reader());
  if (!known) return tl::unexpected(known.error());
  for (const auto& name : *known) told_.insert_or_assign(name.task, name);
  return {};
}

std::optional<CheckpointName> ToldSafe::of(uint64_t task) const {
  const auto known = told_.find(task);
  return known == told_.end() ? std::nullopt : std::optional(known->second);
}

void ToldSafe::tell(const CheckpointName& name, std::function<void()> tell) {
  if (of(name.task) >= name || on_the_way_.contains(name.task)) return;
  on_the_way_.emplace(name.task, name);
  state_.store.write([name](Db& db) { return records::put_safe_checkpoint(db, name); },
                     [this, name, tell = std::move(tell)](const Status& status) {
                       on_the_way_.erase(name.task);
                       if (!status)
                         return spdlog::warn("{}: {}", to_string(name), status.error().message);
                       told_.insert_or_assign(name.task, name);
                       tell();
                     });
}

}  // namespace tierpilot
