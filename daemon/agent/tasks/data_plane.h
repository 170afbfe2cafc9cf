// What the lifecycle needs of the dataset pool.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

// Callbacks come on the event loop's thread, each exactly once, also after cancel().
class DataPlane {
 public:
  virtual ~DataPlane() = default;
  virtual void serve(AttemptId owner, const std::vector<ServeItem>& needs,
                     std::function<void(Result<Served>)> done) = 0;
  // The pending serve ends soon, with an error.
  virtual void cancel(AttemptId owner) = 0;
  // Lets go of what was served; on success commits what was written and returns it.
  virtual void finish(AttemptId owner, bool success, std::function<void(Committed)> done) = 0;
  // The eviction bandwidth that holds now.
  virtual Result<double> evict_gb_per_s() const = 0;
  // The fast tier's own time to serve so many bytes; 0 when it was not measured.
  virtual uint64_t reference_ns(uint64_t bytes) const = 0;
};

}  // namespace tierpilot::agent
