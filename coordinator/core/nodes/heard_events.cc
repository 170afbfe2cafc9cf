#include "coordinator/core/nodes/heard_events.h"

#include <utility>

namespace tierpilot {

HeardEvents::Written HeardEvents::hear(uint64_t sequence, Written written) {
  std::erase_if(writes_, [](const auto& write) { return !write.second->is_open; });
  if (sequence <= last_) {
    if (const auto open = writes_.find(sequence); open != writes_.end())
      open->second->waiting.push_back(std::move(written));
    else
      written({});
    return nullptr;
  }
  last_ = sequence;
  auto write = std::make_shared<Write>();
  write->waiting.push_back(std::move(written));
  writes_[sequence] = write;
  // The node may be forgotten before that.
  return [write = std::move(write)](const Status& status) {
    write->is_open = false;
    for (const auto& waiting : std::exchange(write->waiting, {})) waiting(status);
  };
}

}  // namespace tierpilot
