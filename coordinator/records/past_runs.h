// What tasks of a name have done, that a next one of the name is expected to do.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "model/unit_id.h"

namespace tierpilot {

struct PastRuns {
  // The most that was used, of a core as fast as that which trainings are predicted for; of a GPU.
  double milli = 0;
  double run_s = 0;  // on such a core, if nothing had held them back
  // The most of up to twenty of them, the newest, and of the twenty before.
  uint64_t memory_bytes = 0, memory_before_bytes = 0;
  double longest_s = 0, longest_before_s = 0;
  std::optional<double> start_s;  // of them; of the newest training
  uint32_t runs = 0;
  int64_t ended_ms = 0;  // wall time, the last of them
};
// Of a name on an engine: what it does on the one tells nothing of the other.
using PastRunsId = std::pair<Engine, std::string>;
using PastRunsByName = std::map<PastRunsId, PastRuns>;

// As they stand in the store; kInvalid where the text is another.
std::string past_runs_text(const PastRuns& runs);
Result<PastRuns> parse_past_runs(const std::string& text);

}  // namespace tierpilot
