#include "tools/demo/runtime_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace tierpilot::demo {
namespace {

namespace fs = std::filesystem;

bool is_stale(const fs::path& folder, std::chrono::seconds spared) {
  const UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return false;
  return info.st_uid == geteuid() && time(nullptr) - info.st_ctime >= spared.count() &&
         flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

Result<RuntimeFolder> RuntimeFolder::create(const fs::path& parent) {
  std::string name = (parent / kFolderPrefix).string() + "XXXXXX";
  if (!mkdtemp(name.data()))
    return fail_errno(errno, fmt::format("no folder can be made in '{}'", parent.string()));
  UniqueFd fd(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || flock(fd.get(), LOCK_SH | LOCK_NB) != 0)
    return fail_errno(errno, fmt::format("folder '{}' cannot be locked", name));
  return RuntimeFolder(name, std::move(fd));
}

void RuntimeFolder::remove_stale(const fs::path& parent, std::chrono::seconds spared) {
  std::error_code ignored;
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(kFolderPrefix) &&
        is_stale(entry.path(), spared))
      stale.push_back(entry.path());
  for (const auto& folder : stale) fs::remove_all(folder, ignored);
}

RuntimeFolder::~RuntimeFolder() {
  if (!lock_) return;  // moved from
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path disk_folder() {
  const char* tmpdir = std::getenv("TMPDIR");
  std::vector<fs::path> folders;
  for (const char* folder : {tmpdir, "/tmp", "/var/tmp"})
    if (folder && *folder == '/' && access(folder, W_OK | X_OK) == 0) folders.emplace_back(folder);
  for (const auto& folder : folders) {
    struct statfs info {};
    if (statfs(folder.c_str(), &info) == 0 && info.f_type != TMPFS_MAGIC) return folder;
  }
  return folders.empty() ? "/tmp" : folders.front();
}

}  // namespace tierpilot::demo
