// A wall clock for each process of a cluster, by a library that is preloaded:
// tests/system/wall_clock.c.
#pragma once

#include <optional>
#include <string>

#include "tests/system/cluster.h"

namespace tierpilot::chaos {

class WallClocks {
 public:
  // Why a library cannot be preloaded into programs of this build.
  static std::optional<std::string> unavailable();
  // Throws std::system_error.
  explicit WallClocks(int nodes);

  void arrange(test::ClusterOptions& options);
  // Of the coordinator (-1) or a node, from now on also when it is started anew.
  void set(int process, int64_t ahead_s);

 private:
  std::filesystem::path file(int process) const;

  test::TempFolder folder_;
};

}  // namespace tierpilot::chaos
