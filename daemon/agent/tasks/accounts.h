// Looks up accounts of this machine: names may be kept by a server that answers late or never, so
// that a thread of its own asks.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "daemon/exec/task.h"

namespace tierpilot::agent {

// With the groups that the account is in. kInvalid: there is no such account; it is root's, the
// daemon's, or its number is below `lowest`. Blocks.
Result<TaskUser> find_account(const std::string& name, uid_t lowest);

class Accounts {
 public:
  using Post = std::function<void(std::function<void()>)>;
  using Found = std::function<void(Result<TaskUser>)>;

  // Results come through `post`.
  Accounts(uid_t lowest, Post post);
  ~Accounts();

  void find(std::string name, Found found);

 private:
  void work();

  const uid_t lowest_;
  const Post post_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<std::pair<std::string, Found>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tierpilot::agent
