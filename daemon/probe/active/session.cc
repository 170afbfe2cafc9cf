#include "daemon/probe/active/session.h"

#include <algorithm>

#include "daemon/probe/active/child.h"

namespace tierpilot {

ProbeSession::ProbeSession(const std::vector<TierSpec>& tiers) {
  for (const auto& tier : tiers) ledgers_.emplace_back(tier);
}

void ProbeSession::run(const std::function<void(const ObservationSink&)>& work,
                       Clock::time_point deadline,
                       std::initializer_list<std::string_view> figures) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const auto in_child = [&work](const LineSink& line) {
    work([&line](const ProbeObservation& observation) { line(observation_to_line(observation)); });
  };
  const auto status =
      run_in_child(in_child, std::max(left, std::chrono::milliseconds(1)), [this](auto line) {
        const auto observation = observation_from_line(line);
        if (observation && observation->tier < ledgers_.size())
          ledgers_[observation->tier].add(*observation);
      });
  if (!status) explain_missing(figures, status.error().message);
}

void ProbeSession::explain_missing(std::initializer_list<std::string_view> figures,
                                   const std::string& reason) {
  for (auto& ledger : ledgers_)
    for (const auto name : figures) ledger.explain_missing(name, reason);
}

std::vector<TierMeasurement> ProbeSession::measurements() const {
  std::vector<TierMeasurement> all;
  for (const auto& ledger : ledgers_) all.push_back(ledger.measurement());
  return all;
}

}  // namespace tierpilot
