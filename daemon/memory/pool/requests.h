// Serve requests from acceptance to finish. Internal to the pool; guarded by its lock.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/pool.h"

namespace tierpilot {

struct Request {
  enum class Phase { kWaiting, kRunning, kServed, kFinishing };

  std::string owner;
  std::vector<ServeItem> items;
  Pool::ServeDone done;
  int64_t received_ns = 0;
  Phase phase = Phase::kWaiting;
  CancelFlag cancel{false};
};

// Who is being served, who waits in which order, and who writes what.
class Requests {
 public:
  // kInvalid or kConflict if the request cannot be one.
  Status accept(const std::shared_ptr<Request>& request);
  void erase(const std::shared_ptr<Request>& request);
  std::shared_ptr<Request> find(const std::string& owner) const;
  const std::map<std::string, std::shared_ptr<Request>>& all() const { return by_owner_; }
  // Requests that wait for room, first come first.
  std::deque<std::shared_ptr<Request>> waiting;

 private:
  std::map<std::string, std::shared_ptr<Request>> by_owner_;
  std::set<std::string> written_;  // datasets with a private copy, or about to have one
};

}  // namespace tierpilot
