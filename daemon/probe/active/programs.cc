#include "daemon/probe/active/programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/probe/active/initiator.h"
#include "daemon/probe/active/rounds.h"
#include "daemon/probe/active/tier_probe.h"
#include "daemon/probe/memory/transfer.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kMaxThreads = 8;

class CostMeter {
 public:
  explicit CostMeter(const Report& report) : report_(report) {}
  ~CostMeter() {
    report_.value(figure::kCost,
                  std::chrono::duration<double>(SteadyClock::now() - start_).count());
  }

 private:
  const Report& report_;
  SteadyClock::time_point start_ = SteadyClock::now();
};

}  // namespace

void probe_tiers(const std::vector<TierSpec>& tiers, const ProbeOptions& options,
                 const ObservationSink& sink) {
  Rounds rounds(options.rounds, SteadyClock::now() + options.enough);
  const auto here = stay_on_one_node();
  const int threads = std::min(static_cast<int>(here.cpus.size()), kMaxThreads);
  std::vector<std::unique_ptr<TierProbe>> probes(tiers.size());
  for (size_t i = 0; i < tiers.size(); ++i) {
    const Report report(i, sink);
    const CostMeter cost(report);
    auto probe = tiers[i].is_directory() ? make_directory_probe(tiers[i], options, threads)
                                         : make_node_probe(tiers[i], options, threads);
    report.value(figure::kInitiator, here.node);
    if (probe) {
      if (options.latency) report.method((*probe)->latency_method());
      if (options.bandwidth) report.method((*probe)->bandwidth_method());
      probes[i] = std::move(*probe);
    } else {
      for (const auto name :
           {figure::kLatency, figure::kCachedLatency, figure::kRead, figure::kWrite, figure::kCopy})
        report.unavailable(name, probe.error().message);
    }
  }
  while (rounds.next())
    for (size_t i = 0; i < tiers.size(); ++i) {
      const Report report(i, sink);
      const CostMeter cost(report);
      if (probes[i] && options.latency) probes[i]->measure_latency(report);
      if (probes[i] && options.bandwidth) probes[i]->measure_bandwidth(report);
    }
}

void probe_transfers(const std::vector<TierSpec>& tiers, const std::vector<size_t>& ranked,
                     const ProbeOptions& options, const ObservationSink& sink) {
  Rounds rounds(options.rounds, SteadyClock::now() + options.enough);
  stay_on_one_node();
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (size_t rank = 0; rank + 1 < ranked.size(); ++rank) {
    const Report report(ranked[rank], sink);
    const CostMeter cost(report);
    const auto& slow = tiers[ranked[rank + 1]];
    auto transfer = make_transfer(tiers[ranked[rank]], slow, {.bytes = options.transfer_bytes});
    transfers.push_back(transfer ? std::move(*transfer) : nullptr);
    if (transfer) {
      report.method(fmt::format("to and from {}: {}", slow.name, transfers.back()->method()));
      continue;
    }
    report_no_transfer(transfer.error(), report);
  }
  while (rounds.next())
    for (size_t rank = 0; rank < transfers.size(); ++rank) {
      const Report report(ranked[rank], sink);
      const CostMeter cost(report);
      if (transfers[rank]) report_transfer(*transfers[rank], report);
    }
}

}  // namespace tierpilot
