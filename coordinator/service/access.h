// Who may do what.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "rpc/peer.h"

namespace tierpilot {

// Each may do what those before it may.
enum class Role {
  kNone,
  kRead,     // look at everything but other people's environments
  kSubmit,   // tasks and datasets; end, pause and resume their own tasks
  kOperate,  // everything
};
std::string_view role_name(Role role);
std::optional<Role> parse_role(std::string_view name);

struct AccessRules {
  // By the name of the certificate, by the account, or by "uid 1000".
  std::map<std::string, Role, std::less<>> users;
  Role others = Role::kOperate;
  // Whose certificates may join as nodes; nothing: every one that this authority has made and that
  // is not one of `users`.
  std::optional<std::set<std::string>> nodes;

  // Root, and the coordinator's own user on its machine, may do everything.
  Role role_of(const Peer& peer) const;
  bool may_join(const Peer& peer) const;
  // Other people's: where nobody has said who operates, that is who could read the store.
  bool sees_environments(const Peer& peer) const;
};

// Of a user as tasks have him, "uid 1000" where the kernel told: the account's name on this
// machine, if it has one.
std::string account_name(const std::string& user);

// "user 'bob'", for people; of a Unix peer the account where it has a name.
std::string described(const Peer& peer);

// kDenied says who has which role, and which one `what` needs.
Status check_role(std::string_view who, Role role, Role needed, std::string_view what);

}  // namespace tierpilot
