#include "policies/sim/evaluation/futures.h"

#include <algorithm>

namespace tierpilot::sim {
namespace {

class Replayed final : public Policy {
 public:
  Replayed(const Past& past, size_t at, const std::function<size_t(const View&)>& choose,
           Policy& then, Future& future)
      : past_(past), at_(at), choose_(choose), then_(then), future_(future) {}

  bool needs_observation() const override { return false; }
  Decision decide(const View& view, const Observation& seen) override {
    const size_t now = next_++;
    if (now > at_) return then_.decide(view, seen);
    Decision decision;
    if (now < at_) {
      decision.node = past_.nodes[now];
    } else {
      decision.node = future_.node = choose_(view);
      future_.view = view;
    }
    return decision;
  }

 private:
  const Past& past_;
  const size_t at_;
  const std::function<size_t(const View&)>& choose_;
  Policy& then_;
  Future& future_;
  size_t next_ = 0;
};

class OthersResponse final : public Listener {
 public:
  OthersResponse(uint32_t task, double& sum_s) : task_(task), sum_s_(sum_s) {}
  void decided(Attempt, const View&, const Observation&, const Decision&) override {}
  void served(Attempt, const ServiceMeasure&, const RewardParts&) override {}
  void abandoned(Attempt) override {}
  void finished(uint32_t task, const TaskTimes& times) override {
    if (task != task_) sum_s_ += times.response_s;
  }

 private:
  const uint32_t task_;
  double& sum_s_;
};

}  // namespace

Result<Future> simulate_future(const ClusterSpec& cluster, const Workload& workload,
                               const Past& past, size_t at, uint32_t last_task,
                               const std::function<size_t(const View&)>& choose, Policy& policy) {
  Workload part = workload;
  part.tasks.resize(std::min<size_t>(part.tasks.size(), size_t{last_task} + 1));
  Future future;
  Replayed replayed(past, at, choose, policy, future);
  OthersResponse others(past.tasks[at], future.others_response_s);
  const auto result = simulate(cluster, part, replayed, {.listener = &others});
  if (!result) return tl::unexpected(result.error());
  return future;
}

}  // namespace tierpilot::sim
