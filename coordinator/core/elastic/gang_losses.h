// The loss of a gang: the mean over its ranks, weighted by the samples that each has worked on.
// Each rank that reports one has seen a part of every batch only. Pure.
#pragma once

#include <cstdint>
#include <map>

#include "coordinator/job_point.h"

namespace tierpilot {

class GangLosses {
 public:
  // A rank that has been silent for so many reports of rank 0 counts no longer.
  static constexpr uint64_t kSilentFor = 32;  // two full reports of a node

  // `point` is what `rank` said of the gang's try `point.attempt`. Rank 0 speaks for the gang: its
  // loss and measures become means over the ranks that said theirs, those that are not finite left
  // out; what others say stays as it is. Where not all say how many samples they have worked on,
  // all count alike.
  void merge(uint64_t gang, uint32_t rank, JobPoint& point);
  void forget(uint64_t gang) { gangs_.erase(gang); }
  size_t gangs() const { return gangs_.size(); }

 private:
  struct Heard {
    JobPoint point;
    uint64_t at = 0;  // reports of rank 0 until then
  };
  struct Gang {
    uint32_t attempt = 0;
    uint64_t reports = 0;  // of rank 0
    std::map<uint32_t, Heard> ranks;
  };
  std::map<uint64_t, Gang> gangs_;
};

}  // namespace tierpilot
