// What part of a training step alone is spent on the GPU, the rest being its host's, as far as the
// speeds alone tell: whose step is shorter on a faster card is on the GPU (Amdahl, Validity of the
// single processor approach, AFIPS 1967), and who takes many samples a second more likely waits for
// a host that prepares them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policies/sharing/predict/pairs/pair_data.h"

namespace tierpilot::sharing {

class GpuParts {
 public:
  // From the speeds alone of all jobs in `data`; how fast they are together is not looked at.
  explicit GpuParts(const PairData& data);

  struct Part {
    double mean = 0;  // of the step, 0 to 1
    double deviation = 0;
  };
  // A job that is in the data, on that card.
  Part of(const std::string& card, const PairJob& job) const;

 private:
  using Job = std::pair<std::string, double>;  // model, batch
  // ln of how likely, by ln(GPU's time / host's time) on a K80.
  std::map<Job, std::vector<double>> likely_;
};

}  // namespace tierpilot::sharing
