// Figures of tiers over everything they depend on: who accesses, page size, load, threads, batch.
//
// As in measure.h all work is done in a child process, and rounds are interleaved: each round
// measures every point once, so that a drift of the machine hits all alike.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/probe/active/measure.h"
#include "daemon/probe/memory/memory.h"

namespace tierpilot {

enum class SweepKind {
  kLatency,    // of dependent loads, with nothing else going on
  kLoaded,     // of dependent loads, while other threads read
  kBandwidth,  // of reading, writing, copying
  kMove,       // of evictions to the next slower tier and promotions back
};

enum class StreamKind { kRead, kWrite, kCopy };

// What is measured at one point; each kind reads the members named for it.
struct SweepPoint {
  SweepKind kind = SweepKind::kLatency;
  size_t tier = 0;                   // index into the tiers
  int initiator_node = 0;            // whose CPUs access it
  PageSize pages = PageSize::kHuge;  // kLatency, kMove: kBase or kHuge
  int load_percent = 0;              // kLoaded: of the time that the load's threads read
  StreamKind stream{};               // kBandwidth
  int threads = 1;                   // kBandwidth
  size_t slower_tier = 0;            // kMove: index into the tiers
  size_t batch_bytes = 0;            // kMove: per call
};

// Nodes only. Every CPU-bearing node that this process may run on, each with every node's memory.
std::vector<SweepPoint> latency_points(const std::vector<TierSpec>& tiers);
// 0, 10, 25, 50 and 100 % of the load that the initiator's other CPUs can make.
std::vector<SweepPoint> loaded_points(const std::vector<TierSpec>& tiers);
// 1, 2, 4, ... and all threads that the initiator has CPUs for.
std::vector<SweepPoint> bandwidth_points(const std::vector<TierSpec>& tiers);
// Neighbours in `tiers`, which are ranked fast to slow: nodes by page size and batch, directories
// by batch.
std::vector<SweepPoint> move_points(const std::vector<TierSpec>& tiers);

namespace figure {
constexpr std::string_view kRate = "gb_per_s";
constexpr std::string_view kLoadRate = "load_gb_per_s";
}  // namespace figure

struct SweepRow {
  SweepPoint point;
  TierSpec tier;
  TierSpec slower_tier;  // kMove
  // Latency, its histogram, evict and promote figures, evidence, method; the rest is "not
  // measured".
  TierMeasurement measured;
  std::vector<std::pair<std::string, Measure>> figures;  // of its kind, beside the latency
};

// A row per point, in order. Options: rounds, timeout, enough, footprints, transfer_bytes.
Result<std::vector<SweepRow>> run_sweep(const std::vector<TierSpec>& tiers,
                                        const std::vector<SweepPoint>& points,
                                        const ProbeOptions& options);

// {"tier", "initiator_node", "pages", ...what the point's kind has..., figures, "method", "spread",
//  "rounds", "quality", "quality_reason"}
nlohmann::ordered_json sweep_row_to_json(const SweepRow& row);

}  // namespace tierpilot
