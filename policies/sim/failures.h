// When nodes and GPUs fail and return: each with an exponential time of its own, and each failure
// may bring others in the same group soon after.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "policies/sim/events/event_queue.h"
#include "policies/sim/model/cluster_spec.h"

namespace tierpilot::sim {

class Failures {
 public:
  Failures(const ClusterSpec& cluster, uint64_t seed, EventQueue& events);

  // Takes a failure or repair event and asks for those that follow from it. False: the event is
  // void, as the device has failed already or is up again.
  bool take(const Event& event);
  static uint32_t gpu_subject(uint32_t node, uint32_t gpu) { return node * kGpusPerNode + gpu; }
  static uint32_t node_of(uint32_t gpu_subject) { return gpu_subject / kGpusPerNode; }
  static uint32_t gpu_of(uint32_t gpu_subject) { return gpu_subject % kGpusPerNode; }

 private:
  static constexpr uint32_t kGpusPerNode = 64;
  struct Group {
    const NodeGroup* spec;
    uint32_t first_node;
  };
  struct Device {
    bool down = false;
    uint32_t generation = 0;
  };

  void plan_failure(int64_t now_ns, EventKind kind, uint32_t subject, double mean_s);
  void plan_companion(int64_t now_ns, EventKind kind, const Group& group);
  const Group& group_of(uint32_t node) const;
  Device& device(EventKind kind, uint32_t subject);

  const ClusterSpec& cluster_;
  EventQueue& events_;
  SeededRandom random_;
  std::vector<Group> groups_;
  std::vector<Device> nodes_, gpus_;
};

}  // namespace tierpilot::sim
