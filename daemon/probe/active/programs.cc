#include "daemon/probe/active/programs.h"

#include <fmt/format.h>
#include <numa.h>
#include <sched.h>

#include <algorithm>

#include "daemon/probe/active/tier_probe.h"
#include "daemon/probe/active/transfer.h"

namespace tierpilot {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMaxThreads = 8;

// Keeps this process on the node it runs on, within the CPUs it may use, so that every tier is seen
// from one place. Returns how many CPUs that are.
int stay_on_one_node() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  const int cpu = sched_getcpu();
  if (numa_available() >= 0 && cpu >= 0) {
    cpu_set_t near;
    CPU_ZERO(&near);
    for (int i = 0; i < CPU_SETSIZE && i < numa_num_configured_cpus(); ++i)
      if (CPU_ISSET(i, &allowed) && numa_node_of_cpu(i) == numa_node_of_cpu(cpu)) CPU_SET(i, &near);
    if (CPU_COUNT(&near) > 0 && sched_setaffinity(0, sizeof near, &near) == 0) allowed = near;
  }
  return std::max(1, CPU_COUNT(&allowed));
}

class CostMeter {
 public:
  explicit CostMeter(const Report& report) : report_(report) {}
  ~CostMeter() {
    report_.value(figure::kCost, std::chrono::duration<double>(Clock::now() - start_).count());
  }

 private:
  const Report& report_;
  Clock::time_point start_ = Clock::now();
};

void measure_transfer(Transfer& transfer, const Report& report) {
  if (auto rate = transfer.evict(); rate)
    report.value(figure::kEvict, *rate / 1e9);
  else
    report.unavailable(figure::kEvict, rate.error().message);
  if (auto rate = transfer.promote(); rate)
    report.value(figure::kPromote, *rate / 1e9);
  else
    report.unavailable(figure::kPromote, rate.error().message);
}

}  // namespace

void probe_tiers(const std::vector<TierSpec>& tiers, const ProbeOptions& options,
                 const ObservationSink& sink) {
  const int threads = std::min(stay_on_one_node(), kMaxThreads);
  std::vector<std::unique_ptr<TierProbe>> probes(tiers.size());
  for (size_t i = 0; i < tiers.size(); ++i) {
    const Report report(i, sink);
    const CostMeter cost(report);
    auto probe = tiers[i].is_directory() ? make_directory_probe(tiers[i], options, threads)
                                         : make_node_probe(tiers[i], options, threads);
    if (probe) {
      if (options.latency) report.method((*probe)->latency_method());
      if (options.bandwidth) report.method((*probe)->bandwidth_method());
      probes[i] = std::move(*probe);
    } else {
      for (const auto name :
           {figure::kLatency, figure::kCachedLatency, figure::kRead, figure::kWrite})
        report.unavailable(name, probe.error().message);
    }
  }
  for (int round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < tiers.size(); ++i) {
      const Report report(i, sink);
      const CostMeter cost(report);
      if (probes[i] && options.latency) probes[i]->measure_latency(report);
      if (probes[i] && options.bandwidth) probes[i]->measure_bandwidth(report);
    }
}

void probe_transfers(const std::vector<TierSpec>& tiers, const std::vector<size_t>& ranked,
                     const ProbeOptions& options, const ObservationSink& sink) {
  stay_on_one_node();
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (size_t rank = 0; rank + 1 < ranked.size(); ++rank) {
    const Report report(ranked[rank], sink);
    const CostMeter cost(report);
    const auto& slow = tiers[ranked[rank + 1]];
    auto transfer = make_transfer(tiers[ranked[rank]], slow, options.transfer_bytes);
    transfers.push_back(transfer ? std::move(*transfer) : nullptr);
    if (transfer) {
      report.method(fmt::format("to and from {}: {}", slow.name, transfers.back()->method()));
      continue;
    }
    report.unavailable(figure::kEvict, transfer.error().message);
    report.unavailable(figure::kPromote, transfer.error().message);
  }
  for (int round = 0; round < options.rounds; ++round)
    for (size_t rank = 0; rank < transfers.size(); ++rank) {
      const Report report(ranked[rank], sink);
      const CostMeter cost(report);
      if (transfers[rank]) measure_transfer(*transfers[rank], report);
    }
}

}  // namespace tierpilot
