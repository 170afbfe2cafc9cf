// The node's figures, each with its unit in its name and, where there is none, the reason.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/agent/data/read_turns.h"
#include "daemon/agent/metrics/self_cost.h"
#include "daemon/agent/node/model.h"
#include "daemon/memory/pool/pool.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot::agent {

// Figures of one subject of the passive probe; all of them unavailable with `reason` without
// `stats`. Migrations have three more for each pair of nodes that was seen.
std::vector<MetricValue> migration_metrics(const std::optional<MigrationStats>& stats,
                                           const std::string& reason);
std::vector<MetricValue> reclaim_metrics(const std::optional<ReclaimStats>& stats,
                                         const std::string& reason);
std::vector<MetricValue> compaction_metrics(const std::optional<CompactionStats>& stats,
                                            const std::string& reason);
std::vector<MetricValue> numa_hint_metrics(const std::optional<NumaHintStats>& stats,
                                           const std::string& reason);
// With two more for each node that was seen.
std::vector<MetricValue> fault_time_metrics(const std::optional<FaultTimeStats>& stats,
                                            const std::string& reason);
std::vector<MetricValue> fault_metrics(const std::optional<FaultStats>& stats,
                                       const std::string& reason);
std::vector<MetricValue> block_io_metrics(const std::optional<BlockIoStats>& stats,
                                          const std::string& reason);
std::vector<MetricValue> pool_metrics(const PoolTotals& totals, const PoolUsage& usage);
std::vector<MetricValue> turn_metrics(const ReadTurns::Totals& totals);

// What the kernel did with the memory of one task, in few figures. `subjects` have the reasons.
std::vector<MetricValue> task_memory_metrics(const GroupIo& group,
                                             const std::vector<SubjectState>& subjects);

// Samples at most once a second, however often it is asked. Owned by one thread.
class MetricsCollector {
 public:
  // `probe` may be null.
  MetricsCollector(const Pool& pool, PassiveProbe* probe, const Clock& clock);

  void refresh();
  const std::vector<MetricValue>& values() const { return values_; }
  // Of one core, between the last two samples.
  const Result<double>& cpu_share() const { return cpu_share_; }
  const Result<double>& bpf_share() const { return bpf_share_; }
  uint64_t resident_bytes() const { return resident_bytes_; }

 private:
  static constexpr int64_t kIntervalNs = 1'000'000'000;

  void sample_probe();
  void sample_bpf_share(int64_t passed_ns);
  std::string reason(const std::string& subject) const;

  const Pool& pool_;
  PassiveProbe* probe_;
  const Clock& clock_;
  SelfCost self_cost_;
  int64_t sampled_ns_ = 0;
  uint64_t bpf_run_time_ns_ = 0;
  std::vector<MetricValue> values_;
  Result<double> cpu_share_ = fail(ErrorCode::kUnavailable, "not sampled yet");
  Result<double> bpf_share_ = fail(ErrorCode::kUnavailable, "not sampled yet");
  uint64_t resident_bytes_ = 0;
};

}  // namespace tierpilot::agent
