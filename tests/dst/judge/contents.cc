#include "tests/dst/judge/contents.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::dst {

Digest Contents::made(const std::string& dataset, uint64_t source) {
  Digest& content = made_[{dataset, source}];
  if (content != 0) return content;
  content = origins_.size() + 1;
  origins_[content] = {0, fmt::format("made as {} from source {}", dataset, source)};
  return content;
}

Digest Contents::written(Digest from, const Run& run) {
  const Digest content = origins_.size() + 1;
  origins_[content] = {
      from, fmt::format("task {} attempt {} on n{}", run.task, run.attempt, run.node + 1)};
  return content;
}

bool Contents::descends(Digest content, Digest from) const {
  while (content != 0 && content != from) content = origins_.at(content).from;
  return content == from;
}

std::string Contents::origin(Digest content) const {
  const auto found = origins_.find(content);
  return found == origins_.end() ? "nobody" : found->second.by;
}

bool Contents::was_made(const std::string& dataset, Digest content) const {
  return std::any_of(made_.begin(), made_.end(), [&](const auto& made) {
    return made.first.first == dataset && made.second == content;
  });
}

}  // namespace tierpilot::dst
