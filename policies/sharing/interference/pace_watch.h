// How a job's pace changes when neighbours come and go: the last windows before a change against
// the first ones after it, by their medians. What changes the pace otherwise (another batch, a
// slower phase) mostly falls into neither or into both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/sharing/interference/interference.h"

namespace tierpilot::sharing {

// A neighbour, as the job and what is known of it.
struct Neighbour {
  uint64_t id = 0;
  Sharer sharer;
};

class PaceWatch {
 public:
  bool is_beside(std::vector<Neighbour> neighbours) const;
  // Who is beside it from now on, by id. Where that is another one than before, what the last ones
  // did may be given, if they were seen for long enough and not given yet.
  std::optional<PaceChange> beside(std::vector<Neighbour> neighbours);
  // Iterations per second of compute, over a window in which nobody came or went. What changed by
  // the last change of neighbours is given once enough is seen. A pace that is no number above zero
  // tells nothing.
  std::optional<PaceChange> add(double pace);

  bool measured() const { return measured_; }  // it has told a pace

 private:
  static constexpr size_t kFewest = 3, kEnough = 6;  // windows
  struct Segment {
    std::vector<Neighbour> neighbours;
    std::vector<double> ln_paces;
  };
  std::optional<PaceChange> change() const;

  std::optional<Segment> before_;  // its last windows
  Segment now_;                    // its first ones until the change is told, then its last ones
  bool told_ = false;
  bool measured_ = false;
};

}  // namespace tierpilot::sharing
