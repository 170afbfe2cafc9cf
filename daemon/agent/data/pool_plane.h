// The dataset pool as the task lifecycle sees it.
#pragma once

#include "daemon/agent/calibration/calibration.h"
#include "daemon/agent/tasks/data_plane.h"
#include "daemon/memory/pool/pool.h"

namespace tierpilot::agent {

class PoolPlane final : public DataPlane {
 public:
  PoolPlane(Pool& pool, const Calibration& calibration) : pool_(pool), calibration_(calibration) {}

  void serve(AttemptId owner, const std::vector<ServeItem>& needs,
             std::function<void(Result<Served>)> done) override;
  void cancel(AttemptId owner) override;
  void finish(AttemptId owner, bool success, std::function<void(Committed)> done) override;
  // From the pool's own evictions; before the first, as calibrated.
  Result<double> evict_gb_per_s() const override;
  uint64_t reference_ns(uint64_t bytes) const override;

 private:
  Pool& pool_;
  const Calibration& calibration_;
};

}  // namespace tierpilot::agent
