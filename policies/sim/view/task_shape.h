// What of a task decides which nodes are candidates for it.
#pragma once

#include <cstdint>

#include "model/resources.h"
#include "policies/sim/model/cluster_spec.h"
#include "policies/sim/model/workload.h"
#include "policies/sim/view/gpus.h"

namespace tierpilot::sim {

struct TaskShape {
  uint32_t units = 0;
  uint32_t gpu_milli = 0;
  uint16_t gpu_type = kAnyGpuType;
  uint64_t memory_bytes = 0;
  // Both 0 when the smallest budget has room for it. The second is of a gang's ranks at one node:
  // what one of them writes is there beside what the others read.
  uint64_t data_bytes = 0;
  uint64_t gang_data_bytes = 0;
  bool operator==(const TaskShape&) const = default;
};

// An idle node of the group, whose GPUs are of this type of the workload's, could take the task.
inline bool could_take(const NodeGroup& group, uint16_t gpu_type, const TaskShape& shape) {
  return group.resources().hold({shape.units, Gpus::whole_gpus(shape.gpu_milli), shape.memory_bytes,
                                 shape.data_bytes}) &&
         (shape.gpu_milli == 0 || shape.gpu_type == kAnyGpuType || shape.gpu_type == gpu_type);
}

}  // namespace tierpilot::sim
