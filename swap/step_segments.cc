#include "swap/step_segments.h"

#include <algorithm>
#include <utility>

namespace tierpilot::swap {

namespace {
constexpr size_t kMostSegments = 1'000'000;  // of a step: of more nothing is known
}  // namespace

bool StepSegments::begin(uint64_t place, int64_t input_bytes, int64_t computed_ns) {
  if (inside_ || segments_.size() >= kMostSegments) return false;
  const bool again = again_ = learner_.begin(place);
  recomputed_ += again;
  ++begun_;
  inside_ = true;
  segments_.push_back({.place = place, .freed_bytes = -std::max<int64_t>(input_bytes, 0)});
  began_ns_ = computed_ns;
  return again;
}

void StepSegments::end(bool possible, int64_t computed_ns) {
  if (!std::exchange(inside_, false)) return;
  auto& segment = segments_.back();
  segment.compute_ns = std::max<int64_t>(computed_ns - began_ns_, 0);
  segment.freed_bytes = std::max<int64_t>(segment.freed_bytes, 0);
  segment.possible = possible;
  if (possible || !again_) return;
  --recomputed_;
  learner_.forbid(segment.place);
}

void StepSegments::saved(int64_t bytes) {
  if (inside_) segments_.back().freed_bytes += bytes;
}

void StepSegments::finish(const StepEnd& seen, int64_t room_bytes, const Link& link, bool fits) {
  SegmentedStep step{.segments = std::exchange(segments_, {})};
  inside_ = false;
  const auto& times = seen.step.time_ns;
  const bool observed = seen.step.other_bytes.size() == times.size();
  // Where all are to be computed again nothing has to be known of what they free.
  if (!observed)
    return learner_.end(learner_.takes_all() && !step.segments.empty() ? &step : nullptr, link,
                        seen.cost_ns(), fits);
  step.over_bytes = seen.step.kept_bytes() - room_bytes;
  step.room_bytes = room_bytes;
  for (size_t at = 0; at < times.size(); ++at)
    (at < seen.step.saves.size() ? step.forward_ns : step.backward_ns) += times[at];
  learner_.end(&step, link, seen.cost_ns(), fits);
}

void StepSegments::finish_unsaved(const Link& link) {
  segments_.clear();
  inside_ = false;
  learner_.end(nullptr, link, 0, false);
}

void StepSegments::add_to(Statistics& statistics) const {
  statistics.segments += begun_;
  statistics.recomputed_segments += recomputed_;
}

}  // namespace tierpilot::swap
