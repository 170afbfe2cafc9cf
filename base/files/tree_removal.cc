#include "base/files/tree_removal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/files/own_folder.h"

namespace tierpilot {
namespace {

// Depth first, with few descriptors and without paths: what is too deep is moved up to the top, and
// removed from there. Never through a link, whatever tasks do there meanwhile.
class TreeRemoval {
 public:
  int run(const char* top, const std::function<bool()>& goes_on) {
    remove(AT_FDCWD, top);
    while (!open_.empty() && goes_on()) step();
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
    open_own_folder(parent, name);
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

}  // namespace

int remove_tree(const std::filesystem::path& top, const std::function<bool()>& goes_on) {
  return TreeRemoval().run(top.c_str(), goes_on);
}

}  // namespace tierpilot
