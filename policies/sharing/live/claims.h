// A unit and who has a claim on it, now or later: jobs of promises, which best-effort jobs give way
// to. What they do to each other is asked once for each pair, as all of them are looked at again
// for each job that comes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "policies/sharing/live/neighbours.h"

namespace tierpilot::sharing {

struct Plan {
  double start_s = 0;
  double end_s = kNoPromise;  // with all that it needs, or as much as there is
  uint32_t milli = 0;         // that it takes; 0: there is no room for it
};

class Claims {
 public:
  // The unit and what is retained outlive it.
  Claims(size_t node, const LiveUnit& unit, const Retained& retained);

  const LiveUnit& unit() const { return *unit_; }
  // With nobody else there.
  bool may_run(const WaitingJob& job, const Predicted& predicted) const;
  // From now, or from the first end of a claim, on which the job would be done in time, beside
  // neighbours that do not slow each other too much; else when it is done first.
  Plan plan(const WaitingJob& job, const Predicted& predicted) const;
  // From then on the job has a claim there, too.
  void add(const Plan& plan, const WaitingJob& job, const Predicted& predicted);

 private:
  // Of a speed that is left: a logarithm that is normal, as Kept.
  struct Loss {
    double ln = 0, variance = 0;
    Kept kept() const;
  };
  struct Claim {
    LiveJob job;               // as it is once it begins
    double end_s = 0;          // when others count on it to be done
    std::vector<Loss> beside;  // each of the claims, in their order
  };
  // What all who are there at one moment take of each other's speed and of the newcomer's.
  struct Together {
    std::vector<Loss> of_claims;  // the newcomer's part included
    Loss of_newcomer;
  };
  // Until the next claim ends.
  struct Stretch {
    double begin_s = 0;
    uint32_t room = 0;  // that the others leave, each as far ahead of its promise as is aimed at
    uint32_t most_room = 0;  // only just ahead
    double kept = 1;         // of the newcomer's speed
    bool may_begin = false;  // it can be there
  };
  static Loss loss(const Kept& kept);
  Loss beside(const Sharer& victim, const Sharer& neighbour) const;
  Together together(const Sharer& newcomer) const;
  void insert(LiveJob job, double begin_s);
  void without(size_t ended, const Sharer& newcomer, Together& those) const;
  std::vector<Stretch> stretches(const WaitingJob& job, const Predicted& predicted) const;
  static double time_from(std::span<const Stretch> stretches, const Predicted& predicted);
  // Those from `first` on.
  bool bear(const Together& together, size_t first) const;
  bool have_memory(size_t first, uint64_t bytes) const;
  uint32_t room(const Together& together, size_t first, double aim) const;
  // Until best-effort jobs that have to go for it are gone.
  double wait_s(const WaitingJob& job, const Predicted& predicted, uint32_t room) const;

  size_t node_;
  const LiveUnit* unit_;
  const Retained* retained_;
  std::vector<Claim> claims_;  // by their ends
};

}  // namespace tierpilot::sharing
