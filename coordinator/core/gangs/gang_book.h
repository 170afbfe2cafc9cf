// What was measured of gangs: how much of its work each has behind it, and what checkpoints and
// restarts take. Begins anew with the coordinator. Event loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "model/checkpoint_name.h"
#include "policies/gang/placement/job.h"

namespace tierpilot {

// Over the last twenty or so values.
class RecentMean {
 public:
  void add(double value);
  double or_else(double unmeasured) const { return count_ > 0 ? mean_ : unmeasured; }

 private:
  double mean_ = 0;
  uint32_t count_ = 0;
};

class GangBook {
 public:
  // All its ranks run, and go on from this checkpoint (a dataset's name; empty: from nothing).
  // Times are boot time.
  void began(uint64_t gang, const std::string& checkpoint, int64_t now_ns);
  // Nothing of its try runs any more.
  void stopped(uint64_t gang);
  void keep_only(const std::function<bool(uint64_t gang)>& goes_on) {
    std::erase_if(works_, [&](const auto& work) { return !goes_on(work.first); });
  }
  // A node has a checkpoint of it; only the first time that it is told counts.
  void saved(const CheckpointName& checkpoint, int64_t now_ns);
  // A checkpoint kept it waiting for so long.
  void stalled(uint64_t gang, double hours);
  // How many iterations it will have done at its end.
  void told_iterations(uint64_t gang, uint64_t iterations);
  // Its next try is to have so many ranks, if there is room; `why` is for people. Goes with the
  // gang.
  void want(uint64_t gang, uint32_t ranks, std::string why);
  // From when a try other than the first was given its units until it worked.
  void restarted(double hours) { restart_h_.add(hours); }

  // Hours that it had run at this checkpoint, all tries together; 0 for none, and for one that was
  // saved before the coordinator started.
  double run_h(uint64_t gang, const std::string& checkpoint) const;
  // Of its running try, since it began; 0: it does not run.
  double run_h_since_begin(uint64_t gang, int64_t now_ns) const;
  double stalled_h(uint64_t gang) const;
  struct Wanted {
    uint32_t ranks = 0;  // 0: nobody said
    std::string why{};
  };
  Wanted wanted(uint64_t gang) const;
  // The part of all its iterations that it has done at this checkpoint; negative: it has not told
  // how many there are.
  double share_done(uint64_t gang, const std::string& checkpoint) const;
  // What is left of `estimate_h` from this checkpoint on: by its iterations, else by its time, of
  // which a tenth is left at least.
  double left_h(uint64_t gang, double estimate_h, const std::string& checkpoint) const;
  // Of this gang, else of all; `unmeasured` where nothing was.
  gang::Costs costs(uint64_t gang, gang::Costs unmeasured) const;

 private:
  struct Work {
    uint64_t iterations = 0;  // 0: not told
    int64_t began_ns = 0;     // of the running try; 0: none runs
    double before_h = 0;      // that it had run when that try began
    double stalled_h = 0;
    std::map<CheckpointName, double> run_h;  // at each
    Wanted wanted;
    RecentMean checkpoint_h;
  };
  static constexpr size_t kMostCheckpoints = 1000;  // of a gang

  const Work* find(uint64_t gang) const;

  std::map<uint64_t, Work> works_;
  RecentMean checkpoint_h_, restart_h_;
};

}  // namespace tierpilot
