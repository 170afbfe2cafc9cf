// The segments of the step that runs, and what is learned of them.
#pragma once

#include <string>
#include <vector>

#include "policies/swap/learning/segments.h"
#include "policies/swap/learning/step_learner.h"
#include "swap/statistics.h"

namespace tierpilot::swap {

class StepSegments {
 public:
  // By the name of the policy.
  explicit StepSegments(const std::string& rule) : learner_(rule == "swap", rule == "checkpoint") {}

  // Whether it is the segment that the step began with.
  bool began_with(uint64_t place) const {
    return !segments_.empty() && place == segments_.front().place;
  }
  // A segment begins, after so much computing: whether it is to be computed again. Never within
  // another one.
  bool begin(uint64_t place, int64_t input_bytes, int64_t computed_ns);
  void end(bool possible, int64_t computed_ns);
  // So much was saved, in a segment or not.
  void saved(int64_t bytes);

  // The step is over. `room_bytes` is what the device has for all that was seen, `fits` whether it
  // was enough.
  void finish(const StepEnd& seen, int64_t room_bytes, const Link& link, bool fits);
  // Nothing was saved in it.
  void finish_unsaved(const Link& link);

  std::vector<KeptSegments> kept() const { return learner_.kept(); }
  void restore(const std::vector<KeptSegments>& kept) { learner_.restore(kept); }
  bool asks_to_measure() const { return learner_.asks_to_measure(); }
  void add_to(Statistics& statistics) const;

 private:
  SegmentLearner learner_;
  std::vector<Segment> segments_;
  int64_t began_ns_ = 0;
  bool inside_ = false, again_ = false;  // a segment, that is to be computed again
  int64_t begun_ = 0, recomputed_ = 0;
};

}  // namespace tierpilot::swap
