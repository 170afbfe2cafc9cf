// A coordinator that answers from memory, on a Unix socket and a thread of its own.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rpc/cluster.capnp.h"
#include "rpc/event_loop.h"

namespace tierpilot {

// What the fake saw and what it shall answer. Guarded by its mutex.
struct FakeState {
  std::mutex mutex;
  struct Submitted {
    std::string request_id;
    std::vector<std::string> names;
    std::vector<std::string> first_argv;
    std::vector<std::string> first_datasets;  // "name" or "name:rw"
    std::vector<std::string> last_after;
    uint64_t memory_bytes = 0;
    int64_t time_limit_ms = 0;
    std::string memory_tier;
  };
  std::vector<Submitted> submits;
  bool is_of_now = false;                  // with all features
  std::map<uint64_t, std::string> tasks;   // id -> state
  std::map<uint64_t, uint32_t> shares;     // of those that have or want one: thousandths
  std::string reason;                      // that `task show` tells of each
  std::map<std::string, double> measures;  // that each running task has reported
  std::map<std::string, uint64_t> datasets{{"genes", 4096}};
  std::string log = "hello\n";
  std::string degraded;
  std::string active_policy = "random";
  std::string policy_mode = "enforce";
  int64_t history_from_ms = -1, history_until_ms = -1;  // last asked for
  bool silent = false;                                  // never answers a health call
  uint32_t page = 2;                                    // entries per page of a list
};

class FakeCluster {
 public:
  FakeCluster();
  ~FakeCluster();
  // Its connections are lost. May be called again.
  void stop();

  std::string address() const { return "unix:" + folder_ + "/coordinator.sock"; }
  const std::string& folder() const { return folder_; }
  FakeState state;

 private:
  std::string folder_;
  std::atomic<EventLoop*> loop_{nullptr};
  std::thread thread_;
};

}  // namespace tierpilot
