// The thread that decides, one request after another.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "coordinator/policy_host/inbox.h"
#include "coordinator/policy_host/open_requests.h"
#include "coordinator/policy_host/shared_policy.h"
#include "coordinator/policy_host/training_thread.h"

namespace tierpilot {

struct Decided {
  uint64_t request = 0;
  Decision decision;
  std::string policy;
  int64_t decide_ns = 0;  // from the request to the decision, the queue before it included
};

class DecisionThread {
 public:
  struct Request {
    uint64_t number = 0;
    std::shared_ptr<const View> view;
    std::function<void(Decided)> done;
    std::chrono::steady_clock::time_point asked;
  };
  using SharedPolicies = std::vector<std::unique_ptr<SharedPolicy>>;

  // Every `interval` the learners are saved, unless `save` is false.
  DecisionThread(SharedPolicies policies, size_t active, OpenRequests& open,
                 TrainingThread& training, std::chrono::milliseconds interval, bool save);
  ~DecisionThread();  // requests that still wait are dropped

  // Thread-safe.
  void submit(Request request) { inbox_.push(std::move(request)); }
  // On the calling thread; empty: submit() it, see SharedPolicy.
  std::optional<Decided> decide_at_once(uint64_t request, const View& view);
  void use(size_t policy) { active_ = policy; }
  size_t active() const { return active_; }

 private:
  struct Stop {};
  using Message = std::variant<Request, Stop>;

  void run();
  void serve(Request& request);

  SharedPolicies policies_;
  std::atomic<size_t> active_;
  OpenRequests& open_;
  TrainingThread& training_;
  std::chrono::milliseconds interval_;
  bool save_;
  Inbox<Message> inbox_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tierpilot
