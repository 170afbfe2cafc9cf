#include "coordinator/service/access.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/clock.h"

namespace tierpilot {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 4> kNames{{{Role::kNone, "none"},
                                                                   {Role::kRead, "read"},
                                                                   {Role::kSubmit, "submit"},
                                                                   {Role::kOperate, "operate"}}};

constexpr int64_t kNamesLastNs = 60'000'000'000;
constexpr size_t kMostNames = 4096;

// Empty: it has none.
std::string account_of(uid_t uid) {
  std::vector<char> buffer(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return "";
  return entry.pw_name;
}

bool is_local_operator(const Peer& peer) {
  return peer.uid && (*peer.uid == 0 || *peer.uid == ::geteuid());
}

}  // namespace

std::string_view role_name(Role role) {
  return kNames[static_cast<size_t>(role)].second;
}

std::optional<Role> parse_role(std::string_view name) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const auto& each) { return each.second == name; });
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

Role AccessRules::role_of(const Peer& peer) const {
  if (is_local_operator(peer)) return Role::kOperate;
  if (users.empty()) return others;
  if (const auto named = users.find(peer.name); named != users.end()) return named->second;
  if (!peer.uid) return others;
  const auto account = users.find(account_of(*peer.uid));
  return account == users.end() ? others : account->second;
}

bool AccessRules::may_join(const Peer& peer) const {
  if (is_local_operator(peer)) return true;
  if (nodes)
    return nodes->contains(peer.name) || (peer.uid && nodes->contains(account_of(*peer.uid)));
  if (role_of(peer) == Role::kOperate) return true;
  // Who is a user is no node: it would get other people's tasks.
  return !peer.uid && !users.contains(peer.name);
}

bool AccessRules::sees_environments(const Peer& peer) const {
  return is_local_operator(peer) || (!users.empty() && role_of(peer) == Role::kOperate);
}

std::string account_name(const std::string& user) {
  uid_t uid = 0;
  const char* end = user.data() + user.size();
  if (!user.starts_with(kUidPrefix)) return user;
  const auto read = std::from_chars(user.data() + kUidPrefix.size(), end, uid);
  if (read.ec != std::errc{} || read.ptr != end) return user;
  // Of the loop's thread, and asked for each start of a task: names may be kept by a server.
  static std::map<uid_t, std::string> known;
  static int64_t known_since_ns = 0;
  const int64_t now_ns = system_clock().boot_ns();
  if (now_ns - known_since_ns > kNamesLastNs || known.size() > kMostNames) known.clear();
  if (known.empty()) known_since_ns = now_ns;
  const auto [name, fresh] = known.try_emplace(uid);
  if (fresh) name->second = account_of(uid);
  return name->second.empty() ? user : name->second;
}

std::string described(const Peer& peer) {
  const auto account = peer.uid ? account_of(*peer.uid) : "";
  return fmt::format("user '{}'", account.empty() ? peer.name : account);
}

Status check_role(std::string_view who, Role role, Role needed, std::string_view what) {
  if (role >= needed) return {};
  return fail(
      ErrorCode::kDenied,
      fmt::format("{} may not {}: that needs the role '{}', and it has '{}' ([users] in the "
                  "coordinator's configuration)",
                  who, what, role_name(needed), role_name(role)));
}

}  // namespace tierpilot
