// How many bytes of what a program keeps from one step to the next (states of an optimiser) stay in
// the device between steps: copies of them are weighed against those of saved tensors, by what a
// replay foretells and then by what steps took.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

namespace tierpilot::swap {

// A step that is over.
struct StepWithStates {
  int64_t cost_ns = 0;  // all of it, updates included; 0: nothing was computed that saves tensors
  int64_t wait_ns = 0;  // for states, of that
  int64_t peak_bytes = 0;
  int64_t passes_peak_bytes = 0;  // until the backward pass was over; 0: there was none
  int64_t target_bytes = 0;       // what the device is to hold at most
  int64_t state_bytes = 0, staying_bytes = 0;
  int64_t least_away_bytes = 0;  // of states, while they were updated
  bool updated = false;          // states were kept in it: an optimiser has stepped
  bool fits = true;
  bool settled = false;  // nothing was tried in it, nor looked at closely
};

class StateRoom {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  // What the step would cost if the device held so many bytes more beside saved tensors, in ns, the
  // price of copies included; nothing where it would not fit.
  using Foretell = std::function<std::optional<double>(int64_t more_bytes)>;

  // 0: all leave.
  int64_t bytes() const { return bytes_; }
  // From another run, which may have been of another model.
  void restore(int64_t bytes) { bytes_ = bytes, phase_ = Phase::kDecided, restored_ = true; }
  bool decided() const { return phase_ == Phase::kDecided; }

  // Whether more or less stays from now on, so that steps have to be planned anew.
  bool step_ended(const StepWithStates& step, const Foretell& foretell);

 private:
  enum class Phase { kWithout, kTried, kDecided };

  bool decide(Phase phase, int64_t bytes);
  bool leave_in_vain(const StepWithStates& step);
  bool all_fit(const StepWithStates& step);
  bool weigh(const StepWithStates& step, const Foretell& foretell);
  bool does_not_fit();
  bool end_trial(const StepWithStates& step);

  Phase phase_ = Phase::kWithout;
  int64_t bytes_ = 0;
  int steps_ = 0;  // settled ones since the last change
  int64_t least_ns_ = 0, least_wait_ns_ = 0;
  int64_t without_ns_ = 0;  // the cheapest step while all left
  int fit_ = 0;             // settled steps in a row beside which all had fitted
  int over_ = 0;            // steps in a row that took more than those in which they left in vain
  int in_vain_ = 0;         // steps in a row in which they left in vain
  int64_t in_vain_peak_bytes_ = 0;
  bool crowded_ = false;   // a step in which they stayed did not fit
  bool restored_ = false;  // what stays is of another run
};

}  // namespace tierpilot::swap
