// Slow-downs of jobs that share units: predicted, and learned from the paces that they show when
// others come to their unit and go. Event loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/core/sharing/pace_windows.h"
#include "policies/sharing/interference/pace_watch.h"
#include "policies/sharing/live/share_policy.h"
#include "policies/sharing/predict/job_predictor.h"

namespace tierpilot {

// Of one task beside one neighbour.
struct SlowDown {
  uint64_t neighbour = 0;
  std::string name;             // of it
  sharing::Kept kept;           // of its speed
  sharing::Kept kept_by_other;  // what it leaves the neighbour
  std::string by;               // what tells it, to be shown
};

class SlowDowns {
 public:
  // What its predictor was trained on tells of cores before anything is measured; null: nothing
  // does. Of GPUs pairs on an H100 do.
  explicit SlowDowns(const sharing::JobPredictor* predictor);

  // For policies; it may outlive this object.
  sharing::Retained retained() const;

  // These run on one unit from now on. Gives what each keeps, by task.
  std::map<uint64_t, double> together(const std::vector<sharing::Neighbour>& running);
  void reported(uint64_t task, const sharing::Sharer& as, const JobPoint& report, double now_s);
  void ended(uint64_t task) { watched_.erase(task); }
  // What was learned since the last call, to be kept; what an earlier coordinator kept.
  std::vector<sharing::LearnedPair> take_learned() { return std::exchange(learned_, {}); }
  void restore(const sharing::LearnedPair& pair) { interference_->restore(pair); }

  bool knows(const std::string& name) const { return interference_->knows(name); }
  SlowDown of(const sharing::Sharer& victim, const sharing::Neighbour& neighbour) const;
  // The task has told a pace; else nothing is learned of it.
  bool measures(uint64_t task) const;

 private:
  struct Watched {
    explicit Watched(bool tells_use) : windows(tells_use) {}
    PaceWindows windows;
    sharing::PaceWatch watch;
  };
  Watched& watched(uint64_t task, const sharing::Sharer& as);
  void learn(const sharing::Sharer& victim, const sharing::PaceChange& change);
  std::string told_by(const sharing::Sharer& victim, const sharing::Kept& kept) const;

  bool cores_are_predicted_;
  std::shared_ptr<sharing::Interference> interference_;
  std::map<uint64_t, Watched> watched_;
  std::vector<sharing::LearnedPair> learned_;
};

}  // namespace tierpilot
