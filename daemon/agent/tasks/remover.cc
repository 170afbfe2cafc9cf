#include "daemon/agent/tasks/remover.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/files/listing.h"
#include "base/log.h"
#include "daemon/exec/options.h"

namespace tierpilot::agent {
namespace fs = std::filesystem;
namespace {

constexpr int kMostOfAName = 8;  // that are being removed at a time

// Depth first, with few descriptors and without paths: what is too deep is moved up to the top, and
// removed from there. Never through a link, whatever tasks do there meanwhile.
class TreeRemoval {
 public:
  // The first error; 0: none. Looks up between the files: the daemon may be ending.
  int run(const fs::path& top, const Chores::Ending& ending) {
    remove(AT_FDCWD, top.c_str());
    while (!open_.empty() && !ending) step();
    return first_error_;
  }

 private:
  static constexpr size_t kMostDepth = 64;

  struct Folder {
    std::string name;
    Listing listing;

    int fd() const { return ::dirfd(listing.get()); }
  };

  void step() {
    const auto& folder = open_.back();
    if (const dirent* entry = ::readdir(folder.listing.get())) {
      if (!is_dots(entry->d_name)) remove(folder.fd(), entry->d_name);
    } else if (open_.size() == 1 && std::exchange(risen_, false)) {
      ::rewinddir(folder.listing.get());
    } else {
      const auto name = std::move(open_.back().name);
      open_.pop_back();
      const int parent = open_.empty() ? AT_FDCWD : open_.back().fd();
      if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) note(errno);
    }
  }

  void remove(int parent, const char* name) {
    if (::unlinkat(parent, name, 0) == 0) return;
    if (errno != EISDIR) return note(errno);
    if (::unlinkat(parent, name, AT_REMOVEDIR) == 0) return;
    if (errno != ENOTEMPTY && errno != EEXIST) return note(errno);
    if (open_.size() == kMostDepth) return rise(parent, name);
    if (auto listing = list_folder(parent, name))
      open_.push_back({name, std::move(listing)});
    else
      note(errno);
  }

  void rise(int parent, const char* name) {
    while (::renameat(parent, name, open_.front().fd(),
                      fmt::format(".deep-{}", serial_++).c_str()) != 0)
      // Else something has that name.
      if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return note(errno);
    risen_ = true;
  }

  void note(int error) {
    if (first_error_ == 0 && error != ENOENT) first_error_ = error;
  }

  std::vector<Folder> open_;  // from the top on
  bool risen_ = false;        // since the top was last listed from its begin
  uint64_t serial_ = 0;
  int first_error_ = 0;
};

void remove_now(const fs::path& folder, const Chores::Ending& ending) {
  const int error = TreeRemoval().run(folder, ending);
  if (error != 0 && !ending)
    spdlog::warn("folder {} cannot be removed: {}", folder.native(), std::strerror(error));
}

fs::path one_further(const fs::path& aside) {
  return aside.parent_path() / (std::string(kRemovedPrefix) + aside.filename().native());
}

}  // namespace

bool Remover::remove(const fs::path& folder) {
  auto aside = folder;
  for (int i = 0; i < kMostOfAName; ++i) {
    aside = one_further(aside);
    if (::rename(folder.c_str(), aside.c_str()) == 0) {
      finish(aside);
      return true;
    }
    // Else one of that name is being removed yet.
    if (errno != ENOTEMPTY && errno != EEXIST) break;
  }
  if (errno != ENOENT)
    spdlog::warn("folder {} cannot be removed: {}", folder.native(), std::strerror(errno));
  return false;
}

void Remover::finish(const fs::path& aside) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(aside);
  }
  chores_.ask();
}

void Remover::work(const Chores::Ending& ending) {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && !ending) {
    const auto folder = waiting_.extract(waiting_.begin());
    lock.unlock();
    remove_now(folder.value(), ending);
    lock.lock();
  }
}

}  // namespace tierpilot::agent
