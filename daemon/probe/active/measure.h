// Active measurement of memory tiers: how far, how wide, and how fast bytes move in and out.
//
// All the work is done in child processes that end before the call returns, so their memory, page
// cache and CPU placement leave no trace in the caller. Call it before the process starts threads
// of its own (fork), and do not reap its children with waitpid(-1) meanwhile.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "daemon/probe/loops/estimate.h"
#include "daemon/topology/tiers.h"

namespace tierpilot {

// A figure, or the reason why there is none.
struct Measure {
  std::optional<double> value{};
  std::string unavailable{};
};

// How the rounds of one figure agreed.
struct Evidence {
  double spread = 0;  // (largest - smallest) / median
  int rounds = 0;
};

// Seen from the CPUs of one node (those this process runs on). Every figure is the median over
// rounds.
struct TierMeasurement {
  TierSpec tier;
  int initiator_node = -1;  // whose CPUs did it; -1: not known
  // Of a dependent load that misses the caches; of a page-in for a directory whose pages were
  // dropped first (unless the directory is DAX and needs none).
  Histogram latency_ns;
  LatencyCounts latency_counts;  // the same in the histogram's buckets: (floor in ns, how often)
  Measure latency_p50_ns;
  Measure latency_p99_ns;
  // A directory's latency once its pages are in the page cache; not a figure of memory nodes.
  Measure cached_latency_p50_ns;
  // Streaming by all measuring threads. Directories: from dropped pages, and up to stable storage.
  Measure read_gb_per_s;
  Measure write_gb_per_s;
  Measure copy_gb_per_s;  // bytes copied within the tier, each read once and written once
  // Bytes leaving this tier for the next slower one, and coming back. Decimal GB, like the others.
  Measure evict_gb_per_s;
  Measure promote_gb_per_s;
  // How long somebody waits for the first page that leaves, or comes back.
  Measure evict_first_page_ns;
  Measure promote_first_page_ns;
  // What moving a file takes whatever its size; its bytes then go at the rates above. Not a figure
  // of two memory nodes, between which single pages move.
  Measure evict_start_ns;
  Measure promote_start_ns;
  std::string method;                        // how, in words
  std::map<std::string, Evidence> evidence;  // by figure as in JSON: "read_gb_per_s"
  double spread = 0;                         // the worst but for the stalls of single pages
  int rounds = 0;                            // the most among the evidence
  Surroundings surroundings;
  double cost_s = 0;  // wall time this tier's figures took
  // Tiers whose latency and bandwidth measure alike share a class; 0 is the fastest. -1: latency
  // was not measured.
  int tier_class = -1;

  // Of one figure (its name in JSON), and of the one with the worst spread, which the reason names.
  Quality quality(const std::string& figure) const;
  Quality quality() const;
};

struct ProbeOptions {
  int rounds = 3;
  bool latency = true;
  bool bandwidth = true;
  bool eviction = true;  // of several tiers: takes latency along, which ranks them
  // Together for all tiers. What is not measured by then is unavailable.
  std::chrono::milliseconds timeout{20'000};
  // No round begins when it would probably end later than this; figures then rest on fewer rounds.
  std::chrono::milliseconds enough{20'000};
  uint64_t node_footprint_bytes =
      0;  // 0: four times the last-level cache, within limits, the same for all
  uint64_t directory_footprint_bytes = 64 << 20;
  // Moved per eviction or promotion, and written per bandwidth round.
  uint64_t transfer_bytes = 16 << 20;
};

// Ranked fast to slow. A tier that cannot be measured is in the result with its reasons; the call
// fails (kInvalid) only for options that make no sense or when there are no tiers.
Result<std::vector<TierMeasurement>> measure_tiers(const std::vector<TierSpec>& tiers,
                                                   const ProbeOptions& options = {});

// What one core computes, multiplications and additions in equal parts over SIMD registers.
struct OperationRates {
  double float32_ops_per_s = 0;
  double int32_ops_per_s = 0;
  // How many float32 operations take as long as one int32 operation.
  double float32_ops_per_int32_op() const { return float32_ops_per_s / int32_ops_per_s; }
  std::string method;
};

// Runs for about 0.1 s on the calling thread.
OperationRates measure_operations();

}  // namespace tierpilot
