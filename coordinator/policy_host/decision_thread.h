// The thread that decides, one request after another.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "coordinator/policy_host/inbox.h"
#include "coordinator/policy_host/open_requests.h"
#include "coordinator/policy_host/training_thread.h"
#include "policies/features.h"
#include "policies/policy.h"

namespace tierpilot {

struct Decided {
  uint64_t request = 0;
  Decision decision;
  std::string policy;
  int64_t decide_ns = 0;  // from the request to the decision, the queue before it included
};

// What `policy` decides; the fallback's choice, marked as a fault, when it throws.
Decision decide_or_fall_back(Policy& policy, const View& view, const Observation& seen);

class DecisionThread {
 public:
  struct Request {
    uint64_t number = 0;
    std::shared_ptr<const View> view;
    std::function<void(Decided)> done;
    std::chrono::steady_clock::time_point asked;
  };
  struct NamedPolicy {
    std::string name;
    std::unique_ptr<Policy> policy;
  };

  // Every `interval` the learners are saved, unless `save` is false.
  DecisionThread(std::vector<NamedPolicy> policies, size_t active, FeatureSettings features,
                 OpenRequests& open, TrainingThread& training, std::chrono::milliseconds interval,
                 bool save);
  ~DecisionThread();  // requests that still wait are dropped

  // Thread-safe.
  void submit(Request request) { inbox_.push(std::move(request)); }
  void use(size_t policy) { active_ = policy; }
  size_t active() const { return active_; }

 private:
  struct Stop {};
  using Message = std::variant<Request, Stop>;

  void run();
  void serve(Request& request);

  std::vector<NamedPolicy> policies_;
  std::atomic<size_t> active_;
  FeatureSettings features_;
  OpenRequests& open_;
  TrainingThread& training_;
  std::chrono::milliseconds interval_;
  bool save_;
  Inbox<Message> inbox_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tierpilot
