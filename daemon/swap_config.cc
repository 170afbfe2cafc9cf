#include "daemon/swap_config.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/bytes.h"
#include "base/sysroot.h"
#include "model/swap_room.h"

namespace tierpilot {
namespace {

bool is_in_memory(const char* directory) {
  struct statfs info {};
  return ::statfs(directory, &info) == 0 &&
         (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

// Who else could put something in the place of the daemon's folder there; empty: nobody. Root, who
// may only be checking the file, is told of other owners when the daemon starts.
std::string complaint_about_owner(const struct stat& info) {
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) && !(info.st_mode & S_ISVTX))
    return fmt::format(
        "others than its owner may write there (mode {:o}), and so take the place of the daemon's "
        "folder: chmod go-w it, or chmod +t it",
        info.st_mode & 07777);
  if (::geteuid() != 0 && info.st_uid != 0 && info.st_uid != ::geteuid())
    return fmt::format("belongs to user {}: chown it to user {}, whom tierpilotd runs as",
                       info.st_uid, ::geteuid());
  return {};
}

// By whatever names.
bool is_same_folder(const SwapTierWords& a, const SwapTierWords& b) {
  std::error_code error;
  return a.kind == SwapTierWords::Kind::kDirectory && b.kind == a.kind &&
         std::filesystem::equivalent(a.directory, b.directory, error);
}

// What is wrong with it; empty: nothing.
std::string complaint_about_directory(const SwapTierWords& tier) {
  const auto* path = tier.directory.c_str();
  struct stat info {};
  struct statvfs room {};
  if (!std::filesystem::path(tier.directory).is_absolute()) return "must be an absolute path";
  // A program is told its tiers as a list.
  if (tier.directory.find_first_of(",=") != std::string::npos)
    return "a ',' or '=' in the path would end it in a list of tiers: choose another folder";
  if (::stat(path, &info) != 0)
    return fmt::format("{}: make the folder, for the user that tierpilotd runs as",
                       std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return "is not a folder";
  if (const auto wrong = complaint_about_owner(info); !wrong.empty()) return wrong;
  if (is_in_memory(path))
    return "is on a tmpfs, which is memory: name a folder on a disk, or a NUMA node as node1=SIZE";
  if (::access(path, R_OK | W_OK | X_OK) != 0)
    return fmt::format("{}: {}", std::strerror(errno),
                       errno == EROFS
                           ? "let its unit write there, with ReadWritePaths= in a drop-in"
                           : "give the folder to the user that tierpilotd runs as");
  if (::statvfs(path, &room) == 0 && tier.bytes / room.f_frsize > room.f_blocks)
    return fmt::format("its file system has {} in all: give a smaller size",
                       format_bytes(static_cast<uint64_t>(room.f_blocks) * room.f_frsize));
  return {};
}

std::string complaint_about(const SwapTierWords& tier, const std::vector<int>& numa_nodes) {
  if (tier.bytes % kSwapRoomStepBytes != 0) return "the size must be in whole MiB";
  if (tier.kind == SwapTierWords::Kind::kDirectory) return complaint_about_directory(tier);
  if (tier.kind != SwapTierWords::Kind::kNode ||
      std::find(numa_nodes.begin(), numa_nodes.end(), tier.node) != numa_nodes.end())
    return {};
  return numa_nodes.empty()
             ? std::string(
                   "this kernel knows no NUMA nodes: name a folder, as dir:/srv/slow=100GiB")
             : fmt::format("this machine has no NUMA node {} with memory: it has {}", tier.node,
                           format_id_list(numa_nodes));
}

}  // namespace

std::vector<SwapTierWords> read_swap_tiers(ConfigReader& reader,
                                           const std::vector<int>& numa_nodes) {
  constexpr size_t kMostTiers = 16;
  auto section = reader.section("swap");
  std::vector<SwapTierWords> tiers;
  const auto entries = section.texts("tiers", {});
  for (const auto& entry : entries) {
    const auto tier = parse_swap_tier(entry);
    if (!tier) {
      section.complain("tiers", tier.error().message);
      continue;
    }
    if (const auto wrong = complaint_about(*tier, numa_nodes); !wrong.empty())
      section.complain("tiers", fmt::format("'{}': {}", entry, wrong));
    if (std::any_of(tiers.begin(), tiers.end(), [&](const auto& known) {
          return known.name() == tier->name() || is_same_folder(known, *tier);
        }))
      section.complain("tiers", fmt::format("'{}' is named twice", tier->name()));
    tiers.push_back(*tier);
  }
  if (tiers.size() > kMostTiers)
    section.complain("tiers",
                     fmt::format("has {} entries, at most {} are taken", tiers.size(), kMostTiers));
  return tiers;
}

uint64_t swap_room_bytes(const std::vector<SwapTierWords>& tiers) {
  uint64_t bytes = 0;
  for (const auto& tier : tiers) bytes += tier.bytes;
  return bytes;
}

}  // namespace tierpilot
