// Which segments of a forward pass are computed again in the backward pass, where what else is over
// the budget is copied away and back: a choice by measured times.
//
// What a segment saves is dropped and made again from its inputs, as in checkpointing (Chen et al.,
// Training Deep Nets with Sublinear Memory Cost, 2016).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "policies/swap/learning/kept_plans.h"
#include "policies/swap/link/link.h"

namespace tierpilot::swap {

struct Segment {
  uint64_t place = 0;  // the same in every step
  int64_t compute_ns = 0;
  int64_t freed_bytes = 0;  // that it saves beside its inputs
  bool possible = true;     // to compute it again gives the same
};

struct SegmentedStep {
  std::vector<Segment> segments{};
  int64_t over_bytes = 0;  // over the budget, where everything stays
  int64_t room_bytes = std::numeric_limits<int64_t>::max();  // that the device has for them
  int64_t forward_ns = 0, backward_ns = 0;  // of computing; copies out and in run beside them
};

struct SegmentChoice {
  std::vector<char> again{};  // by segment
  double gain = 1;            // time without over time with it, as estimated; 1 without a link
};

// Those to be computed again: the cheapest for their bytes, as many as make the estimated step
// shortest. None where everything fits. Without a link, as many as it takes. What a segment saves
// is there at once when it has been computed again, beside its inputs and their gradients: none of
// which that takes more than half of the room.
SegmentChoice choose_segments(const SegmentedStep& step, const Link& link);

// Remembers what to do in steps that begin alike, and holds the choice to what steps really took:
// without it, with it, and with more, where steps with it show that there is still much to copy.
class SegmentLearner {
 public:
  // Rules: "swap" (by choose_segments), "checkpoint" (all that is possible); any other: none.
  explicit SegmentLearner(bool learns, bool all) : learns_(learns), all_(all) {}

  // The step's next segment begins: whether it is to be computed again.
  bool begin(uint64_t place);
  // In steps as this one: it turned out not to give the same.
  void forbid(uint64_t place);
  bool takes_all() const { return all_; }
  bool recomputes() const { return known_ && active(*known_); }
  // Whether the next step is to be looked at closely, as one was not whose segments nothing is
  // known of.
  bool asks_to_measure() const { return looks_ > 0; }
  // The step is over. `measured`: its segments and bytes are known; of those that were computed
  // again, that they free nothing more. `step_ns`: 0 where nothing was saved in it.
  void end(const SegmentedStep* measured, const Link& link, int64_t step_ns, bool fits);
  // What is settled, for the next run; and what another run had settled.
  std::vector<KeptSegments> kept() const;
  void restore(const std::vector<KeptSegments>& kept);

 private:
  enum class Phase : uint8_t { kMeasure, kWithout, kWith, kSettled };
  using Choices = std::unordered_map<uint64_t, bool>;  // whether again, by place
  struct Known {
    Phase phase = Phase::kMeasure;
    bool restored = false;  // of another run
    Choices again{};
    double gain = 1;    // time without over time with it, as estimated
    bool first = true;  // its first step, which is slow, has not been
    int64_t computing_ns = std::numeric_limits<int64_t>::max();  // of the step that was measured
    int runs = 0, asked = 0;
    int64_t least_without_ns = 0, least_with_ns = 0;  // 0: never fitted
    bool with = false;                                // once settled
    std::optional<SegmentedStep> left{};              // with it: what others would free yet
    int additions = 0;
    Choices before{};  // the last of them
    int64_t least_before_ns = 0;
  };
  bool active(const Known& known) const;
  bool tells_more(const Known& known, const SegmentedStep& step, bool first) const;
  bool is_clear(const Known& known) const;
  Choices choices(const SegmentedStep& step, const std::vector<char>& chosen) const;
  void measured(Known& known, const SegmentedStep& step, const Link& link);
  bool adds(Known& known, const Link& link) const;

  const bool learns_, all_;
  int looks_ = 0;
  std::unordered_map<uint64_t, Known> by_first_;  // by a step's first segment
  Known* known_ = nullptr;
};

}  // namespace tierpilot::swap
