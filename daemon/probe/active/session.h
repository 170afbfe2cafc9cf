// The ledgers of one measurement, filled from probe processes. Internal.
#pragma once

#include <chrono>
#include <initializer_list>
#include <vector>

#include "daemon/probe/active/observation.h"
#include "daemon/probe/active/programs.h"

namespace tierpilot {

class ProbeSession {
 public:
  using Clock = std::chrono::steady_clock;

  // A ledger per entry: of a tier, or of a point of a sweep over it.
  explicit ProbeSession(const std::vector<TierSpec>& tiers);

  // Runs the work in a child; the figures it did not get to are explained by its end.
  void run(const std::function<void(const ObservationSink&)>& work, Clock::time_point deadline,
           std::initializer_list<std::string_view> figures);
  void explain_missing(std::initializer_list<std::string_view> figures, const std::string& reason);

  Ledger& ledger(size_t index) { return ledgers_[index]; }
  std::vector<TierMeasurement> measurements() const;

 private:
  std::vector<Ledger> ledgers_;
};

}  // namespace tierpilot
