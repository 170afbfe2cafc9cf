// What a session has counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tierpilot::swap {

struct Statistics {
  int64_t steps = 0, known_steps = 0;
  int64_t restored_steps = 0;  // kinds known from another run
  int64_t learning_steps = 0;  // unknown, looked at closely, or trying something
  int64_t saves = 0, saved_bytes = 0;
  int64_t copies_out = 0, bytes_out = 0;
  int64_t copies_in = 0, bytes_in = 0;
  int64_t stalls = 0, stall_ns = 0;  // waits of the program for a copy
  int64_t late = 0;                  // uses of what was not back yet, or not even on its way
  int64_t given_back = 0,
          giving_ns = 0;  // times that free memory was given back, as there was need
  int64_t refused = 0;    // copies out that found no room: the storage stayed
  // Why, where that was in the last step and it took more than the budget.
  std::string refusal{};
  int64_t lost = 0;                               // copies in that failed
  int64_t segments = 0, recomputed_segments = 0;  // of forward passes
  int64_t over_budget_steps = 0;
  int64_t state_saves = 0;          // storages that were kept from one step to the next
  int64_t state_bytes = 0;          // of those that it was told of, and has now
  int64_t state_staying_bytes = 0;  // of these, of what does not leave
  int64_t failures = 0;             // told by the front end: the device had no room
  int64_t device_peak_bytes = 0, saved_peak_bytes = 0;
  int64_t last_step_ns = 0, last_stall_ns = 0, last_peak_bytes = 0;
  int64_t last_passes_ns = 0;  // from the first save to the last use
  int64_t last_others_ns = 0;  // of that, waits for a processor that other programs had
  int64_t least_bytes = 0;     // that the last step needs, if all that can leave does
};

// One saved storage in a step: nanoseconds since its begin; -1: did not happen.
struct Life {
  uint64_t place = 0;
  uint32_t kind = 0;
  int64_t bytes = 0;
  int64_t saved_ns = 0, left_ns = -1, fetched_ns = -1, back_ns = -1, used_ns = -1, ended_ns = -1;
};

// One segment of a step's forward pass, likewise.
struct SegmentLife {
  uint64_t place = 0;
  int64_t began_ns = 0, ended_ns = -1;
  bool again = false;  // what it saved was dropped, to be computed again
};

struct StepLife {
  int64_t step_ns = 0, stall_ns = 0, peak_bytes = 0;
  std::vector<Life> storages{};
  std::vector<SegmentLife> segments{};
};

}  // namespace tierpilot::swap
