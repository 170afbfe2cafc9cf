// Whom the data plane tells what has become of tasks' data.
#pragma once

#include <cstdint>

#include "policies/sim/model/service.h"

namespace tierpilot::sim {

// Told from within the calls of DataPlane; it must not call back.
class DataClient {
 public:
  virtual ~DataClient() = default;
  virtual void served(int64_t now_ns, uint32_t task, const Service& service) = 0;
  // `stale`: a newer version has been written since the task was given to its node.
  virtual void unserved(int64_t now_ns, uint32_t task, bool stale) = 0;
  // Not `committed`: there was no room for what it wrote.
  virtual void settled(int64_t now_ns, uint32_t task, bool committed) = 0;
  // The node has one more (`begins`) or one less of its movers' transfers under way. Gives how
  // many times as long as alone one takes that begins now.
  virtual double transfer(int64_t now_ns, uint32_t node, bool begins) = 0;
  // The node's free fast memory has changed.
  virtual void room_changed(uint32_t node) = 0;
};

}  // namespace tierpilot::sim
