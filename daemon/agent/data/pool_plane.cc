#include "daemon/agent/data/pool_plane.h"

namespace tierpilot::agent {

void PoolPlane::serve(AttemptId owner, const std::vector<ServeItem>& needs,
                      std::function<void(Result<Served>)> done) {
  pool_.serve(to_string(owner), needs, std::move(done));
}

void PoolPlane::cancel(AttemptId owner) {
  pool_.cancel(to_string(owner));
}

void PoolPlane::finish(AttemptId owner, bool success, std::function<void(Committed)> done) {
  pool_.finish(to_string(owner), success, std::move(done));
}

Result<double> PoolPlane::evict_gb_per_s() const {
  if (const auto live = pool_.totals().evict.mean_gb_per_s) return *live;
  return calibration_.evict_gb_per_s();
}

uint64_t PoolPlane::reference_ns(uint64_t bytes) const {
  return service_time_ns(calibration_.fast_tier(), bytes);
}

}  // namespace tierpilot::agent
