// Measures one tier's own figures, a round at a time. Runs in a probe process.
#pragma once

#include <functional>
#include <memory>

#include "daemon/probe/active/measure.h"
#include "daemon/probe/active/observation.h"

namespace tierpilot {

// Reports a figure of the tier it is for.
class Report {
 public:
  Report(size_t tier, std::function<void(const ProbeObservation&)> sink)
      : tier_(tier), sink_(std::move(sink)) {}
  void value(std::string_view figure, double value) const;
  void latency(LatencyCounts counts) const;
  void method(std::string text) const;
  void unavailable(std::string_view figure, std::string reason) const;

 private:
  void send(ProbeObservation observation) const;
  size_t tier_;
  std::function<void(const ProbeObservation&)> sink_;
};

class Transfer;

// Evicts, promotes and reports both, or why neither can be had.
void report_transfer(Transfer& transfer, const Report& report);
void report_no_transfer(const Error& error, const Report& report);

// Owns the tier's memory between rounds.
class TierProbe {
 public:
  virtual ~TierProbe() = default;
  virtual std::string latency_method() const = 0;
  virtual std::string bandwidth_method() const = 0;
  virtual void measure_latency(const Report& report) = 0;
  virtual void measure_bandwidth(const Report& report) = 0;
};

Result<std::unique_ptr<TierProbe>> make_node_probe(const TierSpec& tier,
                                                   const ProbeOptions& options, int threads);
Result<std::unique_ptr<TierProbe>> make_directory_probe(const TierSpec& tier,
                                                        const ProbeOptions& options, int threads);

// How much of each node is chased: four times the last-level cache within 64 to 256 MiB, and no
// more than a sixteenth of the smallest node or, to outgrow the cache, a quarter, nor, but for
// that, than what half of the memory that can be had now is enough for. One size for all: with
// fewer TLB misses a smaller footprint looks like a faster node. `available_bytes` 0: nobody knows.
uint64_t node_footprint_bytes(const std::vector<TierSpec>& tiers, uint64_t available_bytes = 0);

// Of the CPU this runs on, from sysfs; 32 MiB when it does not tell.
uint64_t last_level_cache_bytes();

}  // namespace tierpilot
