#include "coordinator/service/caller.h"

#include <fmt/format.h>

#include "base/audit.h"
#include "rpc/error.h"

namespace tierpilot {

Role Caller::role() const {
  if (role_version_ != shared_.access_version) {
    role_ = shared_.access.role_of(peer_);
    role_version_ = shared_.access_version;
  }
  return role_;
}

void Caller::allow_reading() const {
  value_or_throw(check_role(who_, role(), Role::kRead, "look at the cluster"));
}

void Caller::allow_submit() const {
  const auto allowed = check_role(who_, role(), Role::kSubmit, "submit tasks");
  if (!allowed) shared_.refusals.refused(name(), "submit tasks");
  value_or_throw(allowed);
}

void Caller::allow_change(Role needed, const std::string& what) const {
  const auto allowed = check_role(who_, role(), needed, what);
  if (allowed)
    audit(fmt::format("{}: {}", name(), what));
  else
    shared_.refusals.refused(name(), what);
  value_or_throw(allowed);
}

void Caller::allow_change_of(const Task& task, const std::string& what) const {
  allow_change(task.user == peer_.name ? Role::kSubmit : Role::kOperate, what);
}

[[noreturn]] void refuse(ErrorCode code, std::string message) {
  kj::throwFatalException(to_exception({code, std::move(message)}));
}

}  // namespace tierpilot
