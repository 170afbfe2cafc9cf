#include "policies/sim/failures.h"

#include <algorithm>

namespace tierpilot::sim {
namespace {

bool concerns_gpu(EventKind kind) {
  return kind == EventKind::kGpuFailed || kind == EventKind::kGpuRepaired;
}

}  // namespace

Failures::Failures(const ClusterSpec& cluster, uint64_t seed, EventQueue& events)
    : cluster_(cluster), events_(events), random_(derived_seed(seed, "failures")) {
  uint32_t node = 0;
  for (const NodeGroup& group : cluster.groups) {
    groups_.push_back({&group, node});
    for (uint32_t i = 0; i < group.count; ++i, ++node) {
      nodes_.emplace_back();
      gpus_.resize(nodes_.size() * (group.gpu_failures.mean_between_s > 0 ? kGpusPerNode : 0));
      plan_failure(0, EventKind::kNodeFailed, node, group.node_failures.mean_between_s);
      for (uint32_t gpu = 0; gpu < group.gpus; ++gpu)
        plan_failure(0, EventKind::kGpuFailed, gpu_subject(node, gpu),
                     group.gpu_failures.mean_between_s);
    }
  }
}

Failures::Device& Failures::device(EventKind kind, uint32_t subject) {
  if (!concerns_gpu(kind)) return nodes_[subject];
  if (gpus_.size() <= subject) gpus_.resize(subject + 1);
  return gpus_[subject];
}

const Failures::Group& Failures::group_of(uint32_t node) const {
  const auto after =
      std::upper_bound(groups_.begin(), groups_.end(), node,
                       [](uint32_t n, const Group& group) { return n < group.first_node; });
  return *std::prev(after);
}

void Failures::plan_failure(int64_t now_ns, EventKind kind, uint32_t subject, double mean_s) {
  if (mean_s <= 0) return;
  events_.push(after_s(now_ns, random_.exponential(mean_s)), kind, subject,
               device(kind, subject).generation);
}

void Failures::plan_companion(int64_t now_ns, EventKind kind, const Group& group) {
  if (!random_.chance(cluster_.failure_clusters.probability)) return;
  const auto node = group.first_node + static_cast<uint32_t>(random_.below(group.spec->count));
  const uint32_t subject =
      concerns_gpu(kind) ? gpu_subject(node, static_cast<uint32_t>(random_.below(group.spec->gpus)))
                         : node;
  plan_failure(now_ns, kind, subject, cluster_.failure_clusters.mean_delay_s);
}

bool Failures::take(const Event& event) {
  const auto kind = static_cast<EventKind>(event.kind);
  const bool gpu = concerns_gpu(kind);
  const bool fails = kind == EventKind::kNodeFailed || kind == EventKind::kGpuFailed;
  Device& hit = device(kind, event.subject);
  if (hit.generation != event.generation || hit.down == fails) return false;
  hit.down = fails;
  ++hit.generation;
  const Group& group = group_of(gpu ? node_of(event.subject) : event.subject);
  const FailureRate& rate = gpu ? group.spec->gpu_failures : group.spec->node_failures;
  if (fails) {
    events_.push(after_s(event.at_ns, random_.exponential(rate.mean_repair_s)),
                 gpu ? EventKind::kGpuRepaired : EventKind::kNodeRepaired, event.subject,
                 hit.generation);
    plan_companion(event.at_ns, kind, group);
  } else {
    plan_failure(event.at_ns, gpu ? EventKind::kGpuFailed : EventKind::kNodeFailed, event.subject,
                 rate.mean_between_s);
  }
  return true;
}

}  // namespace tierpilot::sim
