#include "coordinator/core/owed_writes.h"

#include <utility>

namespace tierpilot {

void OwedWrites::write(const std::string& key, Store::Change change) {
  auto& owed = owed_[key];
  owed.change = std::move(change);
  begin(key, owed);
}

void OwedWrites::begin(const std::string& key, Owed& owed) {
  owed.number = ++writes_;
  owed.has_failed = false;
  store_.write(owed.change, [this, key, number = owed.number](const Status& status) {
    const auto found = owed_.find(key);
    if (found == owed_.end() || found->second.number != number) return;
    found->second.has_failed = !status;
    if (status) owed_.erase(found);
  });
}

void OwedWrites::retry() {
  for (auto& [key, owed] : owed_)
    if (owed.has_failed) begin(key, owed);
}

}  // namespace tierpilot
