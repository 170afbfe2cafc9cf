#include "daemon/agent/tasks/tree_sizes.h"

#include <sys/stat.h>

#include <algorithm>

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

uint64_t tree_bytes(const fs::path& path, const Chores::Ending& ending) {
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(path, error), end;
  for (; !error && it != end && !ending; it.increment(error)) {
    struct stat st;
    if (::lstat(it->path().c_str(), &st) == 0) bytes += static_cast<uint64_t>(st.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace

std::vector<std::optional<uint64_t>> TreeSizes::of(const std::vector<Tree>& trees) {
  std::vector<std::optional<uint64_t>> sizes;
  std::map<fs::path, Known> known;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& tree : trees) {
      const auto before = known_.find(tree.path);
      const bool same = before != known_.end() && before->second.modified_ns == tree.modified_ns;
      sizes.push_back(same ? before->second.bytes : std::nullopt);
      known[tree.path] = {tree.modified_ns, sizes.back()};
    }
    known_ = std::move(known);
  }
  if (measuring()) chores_.ask();
  return sizes;
}

bool TreeSizes::measuring() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(known_.begin(), known_.end(),
                     [](const auto& known) { return !known.second.bytes; });
}

std::vector<TreeSizes::Tree> TreeSizes::unknown() const {
  const std::lock_guard lock(mutex_);
  std::vector<Tree> trees;
  for (const auto& [path, known] : known_)
    if (!known.bytes) trees.push_back({path, known.modified_ns});
  return trees;
}

void TreeSizes::work(const Chores::Ending& ending) {
  for (const auto& tree : unknown()) {
    const uint64_t bytes = tree_bytes(tree.path, ending);
    if (ending) return;
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(tree.path);
    if (known != known_.end() && known->second.modified_ns == tree.modified_ns)
      known->second.bytes = bytes;
  }
}

}  // namespace tierpilot::agent
