// Active measurement of memory tiers: how far, how wide, and how fast bytes move in and out.
//
// All the work is done in child processes that end before the call returns, so their memory, page
// cache and CPU placement leave no trace in the caller. Call it before the process starts threads
// of its own (fork), and do not reap its children with waitpid(-1) meanwhile.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "daemon/topology/tiers.h"

namespace tierpilot {

// A figure, or the reason why there is none.
struct Measure {
  std::optional<double> value{};
  std::string unavailable{};
};

// Seen from the CPUs of one node (those this process runs on). Every figure is the median over
// rounds.
struct TierMeasurement {
  TierSpec tier;
  // Of a dependent load that misses the caches; of a page-in for a directory whose pages were
  // dropped first (unless the directory is DAX and needs none).
  Histogram latency_ns;
  Measure latency_p50_ns;
  Measure latency_p99_ns;
  // A directory's latency once its pages are in the page cache; not a figure of memory nodes.
  Measure cached_latency_p50_ns;
  // Streaming by all measuring threads. Directories: from dropped pages, and up to stable storage.
  Measure read_gb_per_s;
  Measure write_gb_per_s;
  // Bytes leaving this tier for the next slower one, and coming back. Decimal GB, like the others.
  Measure evict_gb_per_s;
  Measure promote_gb_per_s;
  std::string method;  // how, in words
  // The worst of the figures' (largest - smallest) / median over rounds; 0 with one round.
  double spread = 0;
  int rounds = 0;        // completed
  double load_1min = 0;  // of the machine, before measuring: a loaded machine measures worse
  double cost_s = 0;     // wall time this tier's figures took
};

struct ProbeOptions {
  int rounds = 3;
  bool latency = true;
  bool bandwidth = true;
  bool eviction = true;  // of several tiers: takes latency along, which ranks them
  // Together for all tiers. What is not measured by then is unavailable.
  std::chrono::milliseconds timeout{20'000};
  uint64_t node_footprint_bytes = 0;  // 0: four times the last-level cache, within limits
  uint64_t directory_footprint_bytes = 64 << 20;
  // Moved per eviction or promotion, and written per bandwidth round.
  uint64_t transfer_bytes = 16 << 20;
};

// Ranked fast to slow. A tier that cannot be measured is in the result with its reasons; the call
// fails (kInvalid) only for options that make no sense or when there are no tiers.
Result<std::vector<TierMeasurement>> measure_tiers(const std::vector<TierSpec>& tiers,
                                                   const ProbeOptions& options = {});

// Indices, fast to slow: by median latency, among much the same latencies (10 %) by read bandwidth,
// among much the same bandwidths (25 %) in the order given; unmeasured tiers last.
std::vector<size_t> rank_tiers(const std::vector<TierMeasurement>& tiers);

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
