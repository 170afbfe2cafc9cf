#include "coordinator/policy_host/decision_thread.h"

#include <pthread.h>

#include <exception>
#include <utility>

#include "base/log.h"
#include "policies/dqn/q_network.h"
#include "policies/heuristics.h"

namespace tierpilot {

using SteadyClock = std::chrono::steady_clock;

DecisionThread::DecisionThread(std::vector<NamedPolicy> policies, size_t active,
                               FeatureSettings features, ExperienceLedger& ledger,
                               std::chrono::milliseconds interval, Hooks hooks)
    : policies_(std::move(policies)),
      active_(active),
      features_(features),
      ledger_(ledger),
      interval_(interval),
      hooks_(std::move(hooks)),
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
    hooks_.every_interval();
    due = SteadyClock::now() + interval_;
  }
}

void DecisionThread::serve(Request& request) {
  if (!ledger_.still_wanted(request.id)) return;
  NamedPolicy& chosen = policies_[active_];
  auto seen = std::make_shared<const Observation>(observe(request.view, features_));
  Decided decided;
  decided.id = request.id;
  decided.policy = chosen.name;
  decided.decision = choose(*chosen.policy, request.view, *seen);
  decided.observation = seen->values;
  const auto took = SteadyClock::now() - request.asked;
  decided.decide_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();

  const size_t node = decided.decision.node;
  const uint32_t slot = node == kNoNode ? kSlots : request.view.nodes[node].slot;
  if (slot >= kSlots) seen = nullptr;
  if (!ledger_.decided(request.id, std::move(seen), slot)) return;
  request.done(std::move(decided));
  hooks_.after_decision();
}

Decision DecisionThread::choose(Policy& policy, const View& view, const Observation& seen) {
  try {
    return policy.decide(view, seen);
  } catch (const std::exception& error) {
    spdlog::error("a policy failed, the fallback decides: {}", error.what());
    Decision decision = fallback_decide(view);
    decision.reason = "the policy failed: " + decision.reason;
    return decision;
  }
}

}  // namespace tierpilot
