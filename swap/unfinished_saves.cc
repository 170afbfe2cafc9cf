#include "swap/unfinished_saves.h"

#include <algorithm>

namespace tierpilot::swap {

void UnfinishedSaves::add(Id id, bool leaves) {
  saves_.push_back({.id = id, .thread = std::this_thread::get_id(), .leaves = leaves});
}

bool UnfinishedSaves::leaves_later(Id id) {
  const auto found = std::ranges::find(saves_, id, &Save::id);
  if (found == saves_.end()) return false;
  found->leaves = true;
  return true;
}

std::vector<Id> UnfinishedSaves::finish() {
  std::vector<Id> leaving;
  std::erase_if(saves_, [&](const Save& save) {
    if (save.thread != std::this_thread::get_id()) return false;
    if (save.leaves) leaving.push_back(save.id);
    return true;
  });
  return leaving;
}

void UnfinishedSaves::forget(Id id) {
  std::erase_if(saves_, [id](const Save& save) { return save.id == id; });
}

}  // namespace tierpilot::swap
