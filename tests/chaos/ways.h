// How the daemons of a cluster reach their coordinator, and what may become of that.
#pragma once

#include <optional>
#include <string>

#include "tests/system/cluster.h"

namespace tierpilot::chaos {

class Ways {
 public:
  virtual ~Ways() = default;
  virtual std::string name() const = 0;
  // Has the cluster's processes use these ways.
  virtual void arrange(test::ClusterOptions& options) = 0;
  // Nothing comes through between coordinator and node; {false, false} opens the way.
  virtual void cut(int node, bool to_coordinator, bool from_coordinator) = 0;
  // Some ten kilobytes a second, both ways.
  virtual void slow(int node, bool slow) = 0;
  virtual std::optional<std::string> why_not_slow() const { return std::nullopt; }
};

}  // namespace tierpilot::chaos
