// [placement] of the node daemon's configuration: which processes' pages are placed, and how.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/config.h"
#include "daemon/memory/heat/tracker.h"
#include "daemon/memory/paging/rules.h"

namespace tierpilot {

struct PagingConfig {
  bool enabled = true;       // where there is more than one memory tier
  uint64_t bytes_per_s = 0;  // of all moves together; 0: no limit
  double cpu_share = 0;      // of one core, for the loop and its tracker; 0: no limit
  int64_t interval_ms = 0;
  int64_t scan_interval_ms = 0;        // at which /proc is searched for processes to place
  std::optional<TrackerKind> tracker;  // nothing: the best that there is
  std::vector<PagingRule> rules;       // the first that holds counts
};

// Notes wrong values with the reader. A group without a name is called after its rule's place,
// "rule 1".
PagingConfig read_paging(ConfigReader& reader);

}  // namespace tierpilot
