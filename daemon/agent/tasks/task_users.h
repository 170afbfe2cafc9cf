// As whom attempts run on this node: who has which user, and who is free.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "daemon/agent/tasks/accounts.h"
#include "daemon/user_config.h"
#include "model/attempt.h"

namespace tierpilot::agent {

// Owned by the event loop's thread.
class TaskUsers {
 public:
  TaskUsers(const TaskUsersConfig& config, Accounts::Post post);

  // Whether tasks have users of their own.
  bool others() const { return config_.others(); }
  // Whether the user is the submitter's account, to be found first.
  bool looks_up() const { return accounts_.has_value(); }
  // Calls `found` once, later. kInvalid: no task runs as this submitter here, says why.
  void find(const std::string& submitter, Accounts::Found found);
  // Without looking up: one of the pool, or nothing for the daemon's own. kExhausted: none is free.
  Result<std::optional<TaskUser>> take(AttemptId attempt);
  // The attempt was not launched.
  void give_back(AttemptId attempt);
  // A user of whom something is left is not used again by this daemon.
  void cleared(AttemptId attempt, const std::string& left);

  // Something is left of it from before this daemon.
  void retire(uid_t uid) { taken_.insert(uid); }

  // For people: as whom tasks run, and what that means.
  std::string description() const;

 private:
  const TaskUsersConfig config_;
  std::optional<Accounts> accounts_;  // where they are looked up
  uid_t next_ = 0;                    // each user has rested as long as can be
  std::map<AttemptId, uid_t> holders_;
  std::set<uid_t> taken_;  // by holders, or no more to be used
};

}  // namespace tierpilot::agent
