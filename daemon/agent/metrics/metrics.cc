#include "daemon/agent/metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace tierpilot::agent {
namespace {

using Values = std::vector<MetricValue>;

Result<double> count(uint64_t value) {
  return static_cast<double>(value);
}

Result<double> quantile(const Histogram& histogram, double q) {
  if (histogram.count() == 0) return fail(ErrorCode::kUnavailable, "none seen yet");
  return histogram.quantile(q);
}

Result<double> in_ms(const Histogram& durations_ns) {
  return durations_ns.mean() * static_cast<double>(durations_ns.count()) / 1e6;
}

// What only some sources of a figure tell.
Result<double> count(const std::optional<uint64_t>& value, const std::string& source) {
  if (value) return count(*value);
  return fail(ErrorCode::kUnavailable, "not told apart by " + source);
}

Result<double> rate(const std::optional<double>& gb_per_s) {
  if (gb_per_s) return *gb_per_s;
  return fail(ErrorCode::kUnavailable, "none seen yet");
}

Result<double> count_of_machine(const MigrationStats& stats,
                                uint64_t MigrationStats::Pages::*which) {
  if (stats.machine) return count((*stats.machine).*which);
  return fail(ErrorCode::kUnavailable, stats.machine_unavailable);
}

Result<double> watched_share(const std::optional<double>& share) {
  if (share) return *share;
  return fail(ErrorCode::kUnavailable, "no page moved, or the kernel does not count them");
}

// The same names whether there are figures or not.
Values all_unavailable(Values values, const std::string& reason) {
  for (auto& value : values) value.value = fail(ErrorCode::kUnavailable, reason);
  return values;
}

template <class Stats>
Values figures(const std::optional<Stats>& stats, const std::string& reason,
               Values (*list)(const Stats&)) {
  return stats ? list(*stats) : all_unavailable(list(Stats{}), reason);
}

void append(Values& to, Values from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

std::string node_name(const std::optional<int>& node) {
  return node ? fmt::format("node{}", *node) : "other";
}

// "MR_NUMA_MISPLACED" as "numa_misplaced".
std::string reason_name(const std::string& reason) {
  std::string name = reason.starts_with("MR_") ? reason.substr(3) : reason;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

// "migrate_node0_to_node1_gb_per_s"; without pairs, how many there are has the reason.
Values pair_metrics(const MigrationStats& stats) {
  if (!stats.pairs_unavailable.empty())
    return {{"migrate_node_pairs", fail(ErrorCode::kUnavailable, stats.pairs_unavailable)}};
  Values values{{"migrate_node_pairs", count(stats.pairs.size())}};
  for (const auto& pair : stats.pairs) {
    const auto name =
        fmt::format("migrate_{}_to_{}", node_name(pair.from_node), node_name(pair.to_node));
    append(values, {{name + "_pages", count(pair.total.pages_moved)},
                    {name + "_busy_ns", count(pair.total.busy_ns)},
                    {name + "_gb_per_s", rate(pair.live_gb_per_s)}});
  }
  return values;
}

// "memory_..." is of what is charged to the task, "caller_..." of what its processes asked for:
// only one of them can be told.
Values owned_migration_metrics(const OwnedMigrations& seen) {
  const std::string prefix = seen.by == OwnedMigrations::By::kMemory ? "memory" : "caller";
  Values values{{prefix + "_migrated_pages", count(seen.total.pages_moved)},
                {prefix + "_migrate_failed_pages", count(seen.total.pages_failed)},
                {prefix + "_migrate_watched_pages_share", watched_share(seen.watched_pages_share)},
                {prefix + "_migrate_busy_ms", static_cast<double>(seen.total.busy_ns) / 1e6}};
  for (const auto& pair : seen.pairs)
    for (const auto& [reason, counts] : pair.by_reason)
      values.push_back({fmt::format("{}_{}_to_{}_{}_pages", prefix, node_name(pair.from_node),
                                    node_name(pair.to_node), reason_name(reason)),
                        count(counts.pages_moved)});
  if (seen.lost_calls > 0)
    values.push_back({prefix + "_migrate_lost_calls", count(seen.lost_calls)});
  return values;
}

}  // namespace

Values migration_metrics(const std::optional<MigrationStats>& stats, const std::string& reason) {
  return figures<MigrationStats>(stats, reason, [](const MigrationStats& s) {
    Values values{{"migrate_calls", count(s.total.calls)},
                  {"migrated_pages", count_of_machine(s, &MigrationStats::Pages::moved)},
                  {"migrate_failed_pages", count_of_machine(s, &MigrationStats::Pages::failed)},
                  {"migrate_watched_pages_share", watched_share(s.watched_pages_share)},
                  {"migrate_watched_time_share", s.watched_time_share},
                  {"migrate_p50_ns", quantile(s.duration_ns, 0.5)},
                  {"migrate_p99_ns", quantile(s.duration_ns, 0.99)},
                  {"migrate_gb_per_s", rate(s.live_gb_per_s)}};
    for (const auto& [why, counts] : s.by_reason)
      values.push_back({"migrate_" + reason_name(why) + "_pages", count(counts.pages_moved)});
    append(values, pair_metrics(s));
    if (s.lost_calls > 0) values.push_back({"migrate_lost_calls", count(s.lost_calls)});
    return values;
  });
}

Values reclaim_metrics(const std::optional<ReclaimStats>& stats, const std::string& reason) {
  return figures<ReclaimStats>(stats, reason, [](const ReclaimStats& s) {
    return Values{{"direct_reclaim_stalls", count(s.direct.calls)},
                  {"direct_reclaim_pages", count(s.direct.pages)},
                  {"direct_reclaim_stall_p50_ns", quantile(s.direct.duration_ns, 0.5)},
                  {"direct_reclaim_stall_p99_ns", quantile(s.direct.duration_ns, 0.99)},
                  {"memcg_reclaim_stalls", count(s.memcg.calls)},
                  {"memcg_reclaim_stall_p99_ns", quantile(s.memcg.duration_ns, 0.99)},
                  {"kswapd_wakes", count(s.kswapd_wakes)}};
  });
}

Values compaction_metrics(const std::optional<CompactionStats>& stats, const std::string& reason) {
  return figures<CompactionStats>(stats, reason, [](const CompactionStats& s) {
    return Values{{"compaction_stalls", count(s.direct.zones)},
                  {"compaction_stall_p50_ns", quantile(s.direct.duration_ns, 0.5)},
                  {"compaction_stall_p99_ns", quantile(s.direct.duration_ns, 0.99)},
                  {"background_compactions", count(s.background.zones)},
                  {"background_compaction_p99_ns", quantile(s.background.duration_ns, 0.99)}};
  });
}

Values fault_metrics(const std::optional<FaultStats>& stats, const std::string& reason) {
  return figures<FaultStats>(stats, reason, [](const FaultStats& s) {
    return Values{{"page_faults", count(s.faults)},
                  {"minor_faults", count(s.faults - std::min(s.major, s.faults))},
                  {"major_faults", count(s.major)}};
  });
}

Values numa_hint_metrics(const std::optional<NumaHintStats>& stats, const std::string& reason) {
  return figures<NumaHintStats>(stats, reason, [](const NumaHintStats& s) {
    Values values{{"numa_hint_faults", count(s.faults)},
                  {"numa_hint_pages", count(s.pages, s.source)},
                  {"numa_hint_migrated_pages", count(s.migrated_pages, s.source)}};
    for (const auto& [node, pages] : s.pages_by_node)
      values.push_back({fmt::format("numa_hint_node{}_pages", node), count(pages)});
    return values;
  });
}

Values fault_time_metrics(const std::optional<FaultTimeStats>& stats, const std::string& reason) {
  return figures<FaultTimeStats>(stats, reason, [](const FaultTimeStats& s) {
    Values values{{"fault_no_page_p50_ns", quantile(s.no_page_ns, 0.5)},
                  {"fault_no_page_p99_ns", quantile(s.no_page_ns, 0.99)}};
    values.push_back({"fault_times_lost", count(s.lost)});
    for (const auto& [node, durations_ns] : s.by_node_ns)
      append(values, {{fmt::format("fault_node{}_p50_ns", node), quantile(durations_ns, 0.5)},
                      {fmt::format("fault_node{}_p99_ns", node), quantile(durations_ns, 0.99)}});
    return values;
  });
}

Values task_memory_metrics(const GroupIo& group, const std::vector<SubjectState>& subjects) {
  const auto reason = [&](const std::string& name) {
    for (const auto& subject : subjects)
      if (subject.subject == name && !subject.reason.empty()) return subject.reason;
    return std::string("unavailable: not counted for this task");
  };
  Values values;
  append(values, figures<FaultStats>(group.faults, reason("faults"), [](const FaultStats& s) {
           return Values{{"page_faults", count(s.faults)}, {"major_faults", count(s.major)}};
         }));
  append(values, figures<ReclaimStats>(group.reclaim, reason("reclaim"), [](const ReclaimStats& s) {
           return Values{{"direct_reclaim_stalls", count(s.direct.calls)},
                         {"direct_reclaim_stall_ms", in_ms(s.direct.duration_ns)},
                         {"memcg_reclaim_stalls", count(s.memcg.calls)},
                         {"memcg_reclaim_stall_ms", in_ms(s.memcg.duration_ns)}};
         }));
  append(values, figures<CompactionStats>(
                     group.compaction, reason("compaction"), [](const CompactionStats& s) {
                       return Values{{"compaction_stall_ms", in_ms(s.direct.duration_ns)}};
                     }));
  append(values,
         figures<NumaHintStats>(group.numa_hint, reason("numa_hint"), [](const NumaHintStats& s) {
           return Values{{"numa_hint_faults", count(s.faults)}};
         }));
  append(values,
         figures<OwnedMigrations>(group.migration,
                                  group.migration_unavailable.empty() ? reason("migration")
                                                                      : group.migration_unavailable,
                                  owned_migration_metrics));
  append(values, fault_time_metrics(group.fault_time, reason("fault_time")));
  return values;
}

Values block_io_metrics(const std::optional<BlockIoStats>& stats, const std::string& reason) {
  return figures<BlockIoStats>(stats, reason, [](const BlockIoStats& s) {
    return Values{{"block_read_requests", count(s.read.requests)},
                  {"block_read_bytes", count(s.read.bytes)},
                  {"block_write_requests", count(s.write.requests)},
                  {"block_write_bytes", count(s.write.bytes)},
                  {"block_errors", count(s.read.errors + s.write.errors + s.other.errors)},
                  {"block_latency_p50_ns", quantile(s.latency_ns, 0.5)},
                  {"block_latency_p99_ns", quantile(s.latency_ns, 0.99)}};
  });
}

Values pool_metrics(const PoolTotals& totals, const PoolUsage& usage) {
  return {{"pool_hits", count(totals.hits)},
          {"pool_hit_bytes", count(totals.hit_bytes)},
          {"pool_promotions", count(totals.promotions)},
          {"pool_promoted_bytes", count(totals.promoted_bytes)},
          {"pool_promote_gb_per_s", rate(totals.promote.mean_gb_per_s)},
          {"pool_fetches", count(totals.fetches)},
          {"pool_fetched_bytes", count(totals.fetched_bytes)},
          {"pool_fetch_gb_per_s", rate(totals.fetch.mean_gb_per_s)},
          {"pool_evictions", count(totals.evictions)},
          {"pool_evicted_bytes", count(totals.evicted_bytes)},
          {"pool_evicted_written_bytes", count(totals.evicted_written_bytes)},
          {"pool_evict_gb_per_s", rate(totals.evict.mean_gb_per_s)},
          {"pool_slow_drops", count(totals.slow_drops)},
          {"pool_commits", count(totals.commits)},
          {"pool_failed_requests", count(totals.failed_requests)},
          {"pool_waiting_requests", count(usage.waiting_requests)},
          {"pool_replicas", count(usage.replicas)},
          {"pool_fast_pinned_bytes", count(usage.fast_pinned_bytes)},
          {"pool_service_p50_ns", quantile(totals.service_ns, 0.5)},
          {"pool_service_p99_ns", quantile(totals.service_ns, 0.99)}};
}

Values turn_metrics(const ReadTurns::Totals& totals) {
  return {{"data_readers", count(totals.reading)},
          {"data_readers_waiting", count(totals.waiting)},
          {"data_turns", count(totals.turns)},
          {"data_readers_sent_elsewhere", count(totals.sent_elsewhere)}};
}

MetricsCollector::MetricsCollector(const Pool& pool, PassiveProbe* probe, const Clock& clock)
    : pool_(pool), probe_(probe), clock_(clock), self_cost_(clock) {}

void MetricsCollector::refresh() {
  const int64_t now_ns = clock_.boot_ns();
  if (sampled_ns_ != 0 && now_ns - sampled_ns_ < kIntervalNs) return;
  values_.clear();
  sample_probe();
  append(values_, pool_metrics(pool_.totals(), pool_.usage()));
  sample_bpf_share(now_ns - sampled_ns_);
  cpu_share_ = self_cost_.cpu_share();
  resident_bytes_ = SelfCost::resident_bytes().value_or(0);
  sampled_ns_ = now_ns;
}

void MetricsCollector::sample_probe() {
  const auto sample = probe_ ? probe_->sample() : PassiveSample{};
  append(values_, migration_metrics(sample.migration, reason("migration")));
  append(values_, reclaim_metrics(sample.reclaim, reason("reclaim")));
  append(values_, compaction_metrics(sample.compaction, reason("compaction")));
  append(values_, fault_metrics(sample.faults, reason("faults")));
  append(values_, numa_hint_metrics(sample.numa_hint, reason("numa_hint")));
  append(values_, fault_time_metrics(sample.fault_time, reason("fault_time")));
  append(values_, block_io_metrics(sample.block_io, reason("block_io")));
}

std::string MetricsCollector::reason(const std::string& subject) const {
  if (!probe_) return "the passive probe is off in the configuration";
  for (const auto& state : probe_->subjects())
    if (state.subject == subject) return state.reason;
  return "not asked for";
}

void MetricsCollector::sample_bpf_share(int64_t passed_ns) {
  if (!probe_ || !probe_->costs_unavailable().empty()) {
    bpf_share_ = fail(ErrorCode::kUnavailable,
                      probe_ ? probe_->costs_unavailable() : "the passive probe is off");
    return;
  }
  uint64_t run_time_ns = 0;
  for (const auto& program : probe_->costs()) run_time_ns += program.run_time_ns;
  if (sampled_ns_ != 0)
    bpf_share_ = static_cast<double>(run_time_ns - std::min(run_time_ns, bpf_run_time_ns_)) /
                 static_cast<double>(passed_ns);
  bpf_run_time_ns_ = run_time_ns;
}

}  // namespace tierpilot::agent
