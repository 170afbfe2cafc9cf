// How full a cluster can get, as the FGD paper measures it (fragmentation.h): pods are drawn from a
// list until they ask for 1.3 times the cluster's units, come one after the other in random order,
// stay, and are left out where they fit nowhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/sim/sharing/pods.h"

namespace tierpilot::sharing {

// Knows all that comes before the first pod does, and may leave out what would fit; see
// clairvoyant.h. It plans for each moment that is measured anew, and never does worse at it than
// policies that run beside it.
inline constexpr std::string_view kForesight = "clairvoyant";

// Those that place pods as they come (placement.h), and the clairvoyant.
std::vector<std::string> full_load_policies();
// kNotFound names the policies there are.
Status check_full_load_policies(const std::vector<std::string>& policies);

struct FullLoadOptions {
  std::vector<std::string> policies;  // of full_load_policies()
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;  // below are those that `share` was tuned with
  double load = 1.3;           // of the cluster's units
  std::function<void(double share)> progress;
};

struct FullLoadRun {
  std::string policy;
  uint64_t seed = 0;
  // Shares of all units.
  double allocation = 0;              // asked for and given, when all pods came
  double allocation_at_capacity = 0;  // when pods came that ask for as much as there is
  double given = 0;                   // more than asked for where whole units are given
  double fragmentation = 0;           // see fragmentation.h; over all that comes
  uint64_t pods = 0;
  uint64_t left_out = 0;
};

// What no policy allocates more than (allocation_bound.h); shares of all units.
struct FullLoadBound {
  uint64_t seed = 0;
  double allocation = 0;
  double allocation_at_capacity = 0;
};

struct FullLoad {
  std::vector<FullLoadRun> runs;  // by seed, then as policies were named, the clairvoyant last
  std::vector<FullLoadBound> bounds;
};

// The whole list in random order; where it asks for less than `load`, drawn from it again, and
// where for more, cut.
std::vector<Request> inflated(const PodTrace& trace, double load, uint64_t seed);

// kNotFound: see check_full_load_policies(); kInvalid: the pods ask for next to no units.
Result<FullLoad> run_full_load(const PodTrace& trace, const FullLoadOptions& options);

}  // namespace tierpilot::sharing
