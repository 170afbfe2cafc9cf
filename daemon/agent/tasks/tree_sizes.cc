#include "daemon/agent/tasks/tree_sizes.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/files/own_folder.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

// Depth first, without paths: those of deep folders take more memory than there is.
class TreeSum {
 public:
  uint64_t of(const fs::path& top, const Chores::Ending& ending) {
    enter(AT_FDCWD, top.c_str());
    while (!folders_.empty() && !ending) step();
    return bytes_;
  }

 private:
  // Listings at a time; of folders further up only the place in theirs is kept.
  static constexpr size_t kMostOpen = 32;
  // So that this has bounds, too. What is deeper does not count; no program comes there by a path.
  static constexpr size_t kMostDepth = 100'000;

  struct Folder {
    dev_t device;
    ino_t inode;
    long place;  // in its listing, while that is closed
    Listing listing;
  };

  void step() {
    const int folder = ::dirfd(folders_.back().listing.get());
    const dirent* entry = ::readdir(folders_.back().listing.get());
    if (!entry) return leave();
    struct stat info {};
    if (is_dots(entry->d_name) || ::fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      return;
    bytes_ += static_cast<uint64_t>(info.st_blocks) * 512;
    if (S_ISDIR(info.st_mode) && folders_.size() < kMostDepth) enter(folder, entry->d_name);
  }

  void enter(int parent, const char* name) {
    auto listing = list_own_folder(parent, name);
    struct stat info {};
    if (!listing || ::fstat(::dirfd(listing.get()), &info) != 0) return;
    folders_.push_back({info.st_dev, info.st_ino, 0, std::move(listing)});
    if (folders_.size() <= kMostOpen) return;
    auto& above = folders_[folders_.size() - 1 - kMostOpen];
    above.place = ::telldir(above.listing.get());
    above.listing.reset();
  }

  void leave() {
    const auto left = std::move(folders_.back());
    folders_.pop_back();
    if (folders_.empty() || folders_.back().listing) return;
    auto& folder = folders_.back();
    folder.listing = list_folder(::dirfd(left.listing.get()), "..");
    struct stat info {};
    // Where somebody has moved it meanwhile, that is another one, and the way up is lost.
    if (!folder.listing || ::fstat(::dirfd(folder.listing.get()), &info) != 0 ||
        info.st_dev != folder.device || info.st_ino != folder.inode)
      return folders_.clear();
    ::seekdir(folder.listing.get(), folder.place);
  }

  std::vector<Folder> folders_;  // from the top on
  uint64_t bytes_ = 0;
};

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
    const uint64_t bytes = TreeSum().of(tree.path, ending);
    if (ending) return;
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(tree.path);
    if (known != known_.end() && known->second.modified_ns == tree.modified_ns)
      known->second.bytes = bytes;
  }
}

}  // namespace tierpilot::agent
