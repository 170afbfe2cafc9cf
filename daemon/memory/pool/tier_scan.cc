// What a tier's directory holds after a restart.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/log.h"
#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/tier_store.h"

namespace tierpilot {
namespace {

namespace fs = std::filesystem;

void put_away_damaged(const std::string& tier, const fs::path& path, const struct stat& info) {
  std::error_code error;
  if (info.st_mode & S_ISVTX) {
    const auto aside = path.parent_path() / (".damaged-" + path.filename().string());
    fs::rename(path, aside, error);
    spdlog::error("{}: home replica '{}' has {} bytes: set aside as '{}'", tier,
                  path.filename().string(), info.st_size, aside.string());
  } else {
    fs::remove(path, error);
    spdlog::warn("{}: '{}' has {} bytes: removed", tier, path.filename().string(), info.st_size);
  }
  if (error) spdlog::error("{}: '{}': {}", tier, path.string(), error.message());
}

}  // namespace

Status TierStore::stamp(ReplicaFile& file) const {
  if (file.id.digest.known()) return {};
  spdlog::info("{}: {} has no checksum yet: its {} bytes are read", name(), describe(file.id),
               file.bytes);
  const auto old_path = path_of(file);
  const auto fd = open_replica(file);
  if (!fd) return tl::unexpected(fd.error());
  const auto digest = digest_file(fd->get(), file.bytes, name(), kNeverCancelled);
  drop_page_cache(fd->get());
  if (!digest) return tl::unexpected(digest.error());
  // Where programs of several versions have run it is there under both names. The one that was just
  // read replaces the other.
  const auto unnamed = std::exchange(file.id.digest, *digest);
  struct stat there {};
  if (::lstat(path_of(file).c_str(), &there) == 0 && (there.st_mode & S_ISVTX))
    if (auto status = set_home({{file.id.name, file.id.version, unnamed}, file.bytes}, true);
        !status)
      return status;
  if (::rename(old_path.c_str(), path_of(file).c_str()) != 0)
    return fail_errno(errno, fmt::format("{}: cannot rename '{}'", name(), old_path));
  return sync_dir();
}

std::vector<FoundReplica> TierStore::stamped(std::vector<FoundReplica> found) const {
  std::map<std::string, FoundReplica> by_name;
  for (auto& replica : found) {
    if (const auto status = stamp(replica.file); !status) {
      spdlog::error("{}: left alone: {}", name(), status.error().message);
      continue;
    }
    const auto one = by_name.emplace(path_of(replica.file), replica).first;
    one->second.home |= replica.home;
  }
  found.clear();
  for (auto& [file_name, replica] : by_name) found.push_back(std::move(replica));
  return found;
}

Result<std::vector<FoundReplica>> TierStore::scan() const {
  std::vector<FoundReplica> found;
  std::error_code error;
  for (fs::directory_iterator it(options_.dir, error), end; !error && it != end;
       it.increment(error)) {
    const std::string file_name = it->path().filename().string();
    if (is_transient_file_name(file_name)) {
      std::error_code ignored;
      fs::remove_all(it->path(), ignored);
      continue;
    }
    const auto file = parse_replica_file_name(file_name);
    struct stat info {};
    const bool ours = file && ::lstat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode);
    if (!ours) continue;  // somebody else's: left alone
    if (static_cast<uint64_t>(info.st_size) != file->bytes)
      put_away_damaged(name(), it->path(), info);
    else
      found.push_back({*file, (info.st_mode & S_ISVTX) != 0,
                       info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  // Only now: what a rename changes in a folder that is being listed may be seen twice.
  found = stamped(std::move(found));
  if (error) return fail_errno(error.value(), name() + ": cannot be listed");
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.modified_ns < b.modified_ns; });
  return found;
}

}  // namespace tierpilot
