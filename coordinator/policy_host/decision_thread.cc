#include "coordinator/policy_host/decision_thread.h"

#include <pthread.h>

#include <exception>
#include <utility>

#include "base/log.h"
#include "policies/fallback.h"
#include "policies/learning/torch_thread.h"

namespace tierpilot {

using SteadyClock = std::chrono::steady_clock;

DecisionThread::DecisionThread(std::vector<NamedPolicy> policies, size_t active,
                               FeatureSettings features, OpenRequests& open,
                               TrainingThread& training, std::chrono::milliseconds interval,
                               bool save)
    : policies_(std::move(policies)),
      active_(active),
      features_(features),
      open_(open),
      training_(training),
      interval_(interval),
      save_(save),
      thread_([this] { run(); }) {}

DecisionThread::~DecisionThread() {
  stopping_ = true;
  inbox_.push(Stop{});
  thread_.join();
}

void DecisionThread::run() {
  pthread_setname_np(pthread_self(), "decide");
  use_one_torch_thread();
  auto due = SteadyClock::now() + interval_;
  while (!stopping_) {
    inbox_.wait_until(due);
    for (Message& message : inbox_.take_all())
      if (auto* request = std::get_if<Request>(&message); request && !stopping_) serve(*request);
    if (SteadyClock::now() < due) continue;
    if (save_) training_.save(nullptr);
    due = SteadyClock::now() + interval_;
  }
}

void DecisionThread::serve(Request& request) {
  if (!open_.contains(request.number)) return;
  NamedPolicy& chosen = policies_[active_];
  Observation seen;
  if (chosen.policy->needs_observation()) seen = observe(*request.view, features_);
  Decided decided;
  decided.request = request.number;
  decided.policy = chosen.name;
  decided.decision = decide_or_fall_back(*chosen.policy, *request.view, seen);
  const auto took = SteadyClock::now() - request.asked;
  decided.decide_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  if (open_.close(request.number)) request.done(std::move(decided));
}

Decision decide_or_fall_back(Policy& policy, const View& view, const Observation& seen) {
  try {
    return policy.decide(view, seen);
  } catch (const std::exception& error) {
    spdlog::error("a policy failed, the fallback decides: {}", error.what());
    Decision decision = fallback_decide(view);
    decision.fault = DecisionFault::kFailed;
    decision.reason = "the policy failed: " + decision.reason;
    return decision;
  }
}

}  // namespace tierpilot
