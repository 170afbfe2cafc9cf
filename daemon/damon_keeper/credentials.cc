#include "daemon/damon_keeper/credentials.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <charconv>
#include <optional>
#include <sstream>

#include "base/unique_fd.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace tierpilot {
namespace {

// The text after "NAME:"; lines cannot be forged, as the kernel escapes what processes name.
std::optional<std::string_view> field(std::string_view status, const std::string& name) {
  const std::string key = "\n" + name + ":";
  const auto at = status.find(key);
  if (at == std::string_view::npos) return {};
  const auto value = status.substr(at + key.size());
  return value.substr(0, value.find('\n'));
}

template <class Number, size_t kCount>
bool parse(std::optional<std::string_view> text, int base, std::array<Number, kCount>& numbers) {
  if (!text) return false;
  for (auto& number : numbers) {
    const auto begin = text->find_first_not_of(" \t");
    if (begin == std::string_view::npos) return false;
    text->remove_prefix(begin);
    const auto [end, err] =
        std::from_chars(text->data(), text->data() + text->size(), number, base);
    if (err != std::errc{}) return false;
    text->remove_prefix(static_cast<size_t>(end - text->data()));
  }
  return true;
}

bool parse_capabilities(std::optional<std::string_view> text, uint64_t& capabilities) {
  std::array<uint64_t, 1> set{};
  const bool parsed = parse(text, 16, set);
  capabilities = set[0];
  return parsed;
}

// Ids are mapped one to one in the initial user namespace, and in those that only root can make.
bool maps_all_ids(const std::string& uid_map) {
  std::array<uint64_t, 3> map{};
  return parse(uid_map, 10, map) && map[0] == 0 && map[1] == 0 && map[2] == UINT32_MAX;
}

// Field 22 of /proc/PID/stat.
bool parse_start(std::string_view stat, uint64_t& ticks) {
  auto at = stat.rfind(") ");
  for (int field = 2; at != std::string_view::npos && field < 22; ++field)
    at = stat.find(' ', at + 1);
  if (at == std::string_view::npos) return false;
  std::array<uint64_t, 1> start{};
  const bool parsed = parse(stat.substr(at), 10, start);
  ticks = start[0];
  return parsed;
}

bool has_ended(const UniqueFd& pidfd) {
  pollfd wait{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) != 0;
}

tl::unexpected<Error> gone(pid_t pid) {
  return fail(ErrorCode::kNotFound, fmt::format("process {}: there is none", pid));
}

Credentials without_capabilities(const ucred& peer) {
  return {.uids = {peer.uid, peer.uid, peer.uid},
          .gids = {peer.gid, peer.gid, peer.gid},
          .owner = peer.uid};
}

// A peer may hand its connection to a child, and then start a program that has more privileges than
// itself: setuid, which shows in the ids, or with capabilities of its file, which makes it one that
// may not be dumped.
bool had_at_connect(const Credentials& now, const ucred& peer) {
  return now.uids[1] == peer.uid && now.gids[1] == peer.gid && now.owner == peer.uid;
}

}  // namespace

Result<Credentials> read_credentials(const Sysroot& sysroot, pid_t pid) {
  const auto folder = fmt::format("/proc/{}", pid);
  struct stat info {};
  if (::stat(sysroot.resolve(folder).c_str(), &info) != 0) return gone(pid);
  const auto status = sysroot.read(folder + "/status"), stat = sysroot.read(folder + "/stat"),
             uid_map = sysroot.read(folder + "/uid_map");
  if (!status || !stat || !uid_map) return gone(pid);
  Credentials found{.initial_user_namespace = maps_all_ids(*uid_map),
                    .owner = info.st_uid,
                    .has_memory = field(*status, "VmSize").has_value()};
  if (!parse(field(*status, "Uid"), 10, found.uids) ||
      !parse(field(*status, "Gid"), 10, found.gids) ||
      !parse_capabilities(field(*status, "CapPrm"), found.permitted) ||
      !parse_capabilities(field(*status, "CapEff"), found.effective) ||
      !parse_start(*stat, found.start_ticks))
    return fail(ErrorCode::kInvalid, fmt::format("{}: status or stat makes no sense", folder));
  return found;
}

Result<Credentials> peer_credentials(const Sysroot& sysroot, int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return fail_errno(errno, "SO_PEERCRED");
  int raw_pidfd = -1;
  size = sizeof raw_pidfd;
  const int got = ::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &raw_pidfd, &size);
  if (got != 0 && errno == ENOPROTOOPT) return without_capabilities(peer);
  if (got != 0) return gone(peer.pid);
  const UniqueFd pidfd(raw_pidfd);
  const auto found = read_credentials(sysroot, peer.pid);
  const auto again = read_credentials(sysroot, peer.pid);
  // While it lives no other process has its number, so that those were its own.
  if (has_ended(pidfd)) return gone(peer.pid);
  if (!found) return found;
  // Twice, as the lines of one reading may be from before and after the start of a program.
  if (!again || *found != *again || !had_at_connect(*found, peer))
    return without_capabilities(peer);
  return found;
}

bool may_trace_all(const Credentials& peer) {
  return peer.initial_user_namespace && (peer.effective >> CAP_SYS_PTRACE & 1) != 0;
}

Status may_watch(const Credentials& peer, const Credentials& target) {
  if (may_trace_all(peer)) return {};
  const auto alike = [](const auto& ids, auto id) {
    return ids[0] == id && ids[1] == id && ids[2] == id;
  };
  const uid_t uid = peer.uids[1];
  if (!alike(target.uids, uid) || !alike(target.gids, peer.gids[1]))
    return fail(ErrorCode::kDenied,
                "to watch a process of another user or group needs CAP_SYS_PTRACE");
  // In a user namespace of its own everyone has all capabilities.
  const uint64_t held = peer.initial_user_namespace ? peer.permitted : 0;
  if (target.owner != uid || (target.permitted & ~held) != 0)
    return fail(ErrorCode::kDenied, "to watch a process with more privileges needs CAP_SYS_PTRACE");
  return {};
}

}  // namespace tierpilot
