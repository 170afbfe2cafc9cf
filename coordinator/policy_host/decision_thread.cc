#include "coordinator/policy_host/decision_thread.h"

#include <pthread.h>

#include <utility>

namespace tierpilot {

using SteadyClock = std::chrono::steady_clock;

DecisionThread::DecisionThread(SharedPolicies policies, size_t active, OpenRequests& open,
                               TrainingThread& training, std::chrono::milliseconds interval,
                               bool save)
    : policies_(std::move(policies)),
      active_(active),
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
  SharedPolicy& chosen = *policies_[active_];
  Decided decided;
  decided.request = request.number;
  decided.policy = chosen.name();
  decided.decision = chosen.decide(*request.view);
  const auto took = SteadyClock::now() - request.asked;
  decided.decide_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(took).count();
  if (open_.close(request.number)) request.done(std::move(decided));
}

std::optional<Decided> DecisionThread::decide_at_once(uint64_t request, const View& view) {
  const auto begin = SteadyClock::now();
  SharedPolicy& chosen = *policies_[active_];
  auto decision = chosen.decide_if_quick(view);
  if (!decision) return std::nullopt;
  const auto took = SteadyClock::now() - begin;
  return Decided{request, std::move(*decision), chosen.name(),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()};
}

}  // namespace tierpilot
