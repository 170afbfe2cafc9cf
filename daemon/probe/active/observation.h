// What a probe process reports while it works, one JSON line each, and the ledger in which the
// lines become measurements: so a process that dies loses only what it had not reported yet.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/probe/active/measure.h"

namespace tierpilot {

namespace figure {
constexpr std::string_view kLatency = "latency_ns";
constexpr std::string_view kLatencyTail = "latency_p99_ns";
constexpr std::string_view kCachedLatency = "cached_latency_p50_ns";
constexpr std::string_view kRead = "read_gb_per_s";
constexpr std::string_view kWrite = "write_gb_per_s";
constexpr std::string_view kCopy = "copy_gb_per_s";
constexpr std::string_view kEvict = "evict_gb_per_s";
constexpr std::string_view kPromote = "promote_gb_per_s";
constexpr std::string_view kFirstEvict = "evict_first_page_ns";
constexpr std::string_view kFirstPromote = "promote_first_page_ns";
constexpr std::string_view kStartEvict = "evict_start_ns";
constexpr std::string_view kStartPromote = "promote_start_ns";
constexpr std::string_view kMethod = "method";
constexpr std::string_view kCost = "cost_s";
constexpr std::string_view kInitiator = "initiator_node";

// Of few events a round: it scatters as they do, and says nothing of the other figures.
constexpr bool is_of_few(std::string_view figure) {
  return figure == kFirstEvict || figure == kFirstPromote || figure == kStartEvict ||
         figure == kStartPromote || figure == kLatencyTail;
}
}  // namespace figure

struct ProbeObservation {
  size_t tier = 0;  // index into the tiers that are measured
  std::string figure;
  std::optional<double> value{};
  std::string text{};  // the method, or the reason when there is no value
  LatencyCounts latency_counts{};
};

std::string observation_to_line(const ProbeObservation& observation);
Result<ProbeObservation> observation_from_line(std::string_view line);

// Gathers the observations of one tier over all rounds.
class Ledger {
 public:
  explicit Ledger(TierSpec tier) : tier_(std::move(tier)) {}
  void add(const ProbeObservation& observation);
  // Why figures that nobody reported are missing; the first reason stays.
  void explain_missing(std::string_view figure, std::string reason);
  TierMeasurement measurement() const;

  // The median over rounds of any figure but the latency.
  Measure median_of(std::string_view figure) const;

 private:
  TierSpec tier_;
  std::map<std::string, std::vector<double>, std::less<>> values_;
  std::map<std::string, std::string, std::less<>> reasons_;
  std::vector<double> p50_ns_, p99_ns_;
  LatencyCounts latency_counts_;
  std::string method_;
  double cost_s_ = 0;
  int initiator_node_ = -1;
};

}  // namespace tierpilot
