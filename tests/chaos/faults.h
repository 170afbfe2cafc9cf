// What happens to real processes, at random by a seed.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/chaos/relay.h"
#include "tests/system/cluster.h"

namespace tierpilot::chaos {

struct FaultOptions {
  int nodes = 3;
  uint64_t seed = 1;
  // SIGTERM of daemons. Today it fails tasks for good that had been acknowledged.
  bool stops = false;
};

// A cluster whose daemons reach the coordinator by way of a relay each.
class Faults {
 public:
  Faults(test::Cluster& cluster, std::vector<std::unique_ptr<Relay>>& relays,
         const FaultOptions& options);

  // One fault, now, and its end if it has one; returns some time after.
  void strike();
  // All processes run and all ways are open.
  void heal();
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  void kill_coordinator();
  void stop_coordinator();
  void pause_coordinator();
  void kill_daemon();
  void stop_daemon();
  void pause_daemon();
  void partition();

  int any_node() { return draw(0, options_.nodes - 1); }
  int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void sleep(int from_ms, int to_ms);

  test::Cluster& cluster_;
  std::vector<std::unique_ptr<Relay>>& relays_;
  const FaultOptions options_;
  std::mt19937_64 random_;
  std::map<std::string, int> counts_;
};

}  // namespace tierpilot::chaos
