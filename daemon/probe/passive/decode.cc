#include "daemon/probe/passive/decode.h"

#include <fmt/format.h>

#include <cstring>

#include "bpf/hist.h"

namespace tierpilot {
namespace {

BlockIoStats::Operation decode_operation(const tp_io_op_stats& stats) {
  return {.requests = stats.requests, .bytes = stats.bytes, .errors = stats.errors};
}

ReclaimStats::Waits decode_waits(const tp_reclaim_kind_stats& stats) {
  return {.calls = stats.calls,
          .pages = stats.pages,
          .duration_ns = decode_histogram(stats.duration_ns)};
}

CompactionStats::Runs decode_runs(const tp_compact_kind_stats& stats) {
  return {.zones = stats.calls, .duration_ns = decode_histogram(stats.duration_ns)};
}

MigrationStats::Reason decode_counts(const tp_migrate_counts& counts) {
  return {.calls = counts.calls,
          .pages_moved = counts.pages_moved,
          .pages_failed = counts.pages_failed,
          .timed_pages = counts.timed_pages,
          .busy_ns = counts.busy_ns};
}

}  // namespace

MigrationCounts::Reason& MigrationCounts::Reason::operator+=(const Reason& more) {
  calls += more.calls;
  pages_moved += more.pages_moved;
  pages_failed += more.pages_failed;
  timed_pages += more.timed_pages;
  busy_ns += more.busy_ns;
  return *this;
}

std::string name_of(const EnumNames& names, uint32_t value) {
  const auto found = names.find(value);
  return found == names.end() ? fmt::format("#{}", value) : found->second;
}

std::optional<int> decode_node(int32_t node) {
  return node < 0 ? std::nullopt : std::optional<int>(node);
}

Histogram decode_histogram(const tp_hist& hist) {
  Histogram result;
  for (uint32_t i = 0; i < TP_HIST_BUCKETS; ++i) {
    const uint64_t floor = tp_hist_floor(i);
    const uint64_t next = i + 1 < TP_HIST_BUCKETS ? tp_hist_floor(i + 1) : floor + 1;
    result.add(floor + (next - floor) / 2, hist.buckets[i]);
  }
  return result;
}

MigrationCounts decode_pairs(std::span<const tp_migrate_counts> counts, uint32_t nodes,
                             const EnumNames& reasons) {
  MigrationCounts result;
  const auto node_of = [](uint32_t line) { return decode_node(static_cast<int32_t>(line) - 1); };
  for (uint32_t from = 0; from <= nodes; ++from) {
    for (uint32_t to = 0; to <= nodes; ++to) {
      MigrationStats::Pair pair{.from_node = node_of(from), .to_node = node_of(to)};
      const auto first = (from * (nodes + 1) + to) * TP_MIGRATE_REASONS;
      for (uint32_t reason = 0; reason < TP_MIGRATE_REASONS; ++reason) {
        const auto more = decode_counts(counts[first + reason]);
        if (more.calls == 0) continue;
        const auto name = name_of(reasons, reason);
        pair.by_reason[name] = more;
        pair.total += more;
        result.by_reason[name] += more;
        result.total += more;
      }
      if (pair.total.calls > 0) result.pairs.push_back(std::move(pair));
    }
  }
  return result;
}

MigrationStats decode_migration(const tp_migrate_stats& stats, MigrationCounts counts) {
  MigrationStats result{std::move(counts)};
  result.untimed_calls = stats.untimed;
  result.duration_ns = decode_histogram(stats.duration_ns);
  return result;
}

ReclaimStats decode_reclaim(const tp_reclaim_stats& stats) {
  return {.direct = decode_waits(stats.kinds[TP_RECLAIM_DIRECT]),
          .memcg = decode_waits(stats.kinds[TP_RECLAIM_MEMCG]),
          .kswapd_wakes = stats.kswapd_wakes,
          .untimed_calls = stats.untimed};
}

CompactionStats decode_compaction(const tp_compact_stats& stats) {
  return {.direct = decode_runs(stats.kinds[TP_COMPACT_DIRECT]),
          .background = decode_runs(stats.kinds[TP_COMPACT_BACKGROUND]),
          .untimed_runs = stats.untimed};
}

NumaHintStats decode_numa_hint(const tp_numa_hint_stats& stats) {
  NumaHintStats result{
      .faults = stats.faults, .pages = stats.pages, .migrated_pages = stats.migrated_pages};
  for (int node = 0; node < TP_NODES; ++node)
    if (stats.pages_by_node[node] > 0) result.pages_by_node[node] = stats.pages_by_node[node];
  return result;
}

BlockIoStats decode_block_io(const tp_io_stats& stats) {
  return {.read = decode_operation(stats.ops[TP_IO_READ]),
          .write = decode_operation(stats.ops[TP_IO_WRITE]),
          .other = decode_operation(stats.ops[TP_IO_OTHER]),
          .untimed_requests = stats.untimed,
          .latency_ns = decode_histogram(stats.latency_ns)};
}

std::optional<PassiveEvent> decode_event(const void* data, size_t size, const EnumNames& reasons) {
  tp_event event;
  if (size != sizeof event) return std::nullopt;
  std::memcpy(&event, data, sizeof event);
  PassiveEvent result{};
  if (event.kind == TP_EVENT_MIGRATION) {
    result.kind = PassiveEvent::Kind::kMigration;
    result.detail = name_of(reasons, event.detail);
  } else if (event.kind == TP_EVENT_RECLAIM && event.detail < TP_RECLAIM_KINDS) {
    result.kind = PassiveEvent::Kind::kReclaim;
    result.detail = event.detail == TP_RECLAIM_DIRECT ? "direct" : "memcg";
  } else {
    return std::nullopt;
  }
  result.end_boot_ns = static_cast<int64_t>(event.end_boot_ns);
  if (event.duration_ns > 0) result.duration_ns = event.duration_ns;
  result.pages = event.pages;
  result.pages_failed = event.pages_failed;
  result.from_node = decode_node(event.nodes.from);
  result.to_node = decode_node(event.nodes.to);
  result.tid = event.tid;
  result.pid = event.tgid;
  result.command.assign(event.comm, strnlen(event.comm, sizeof event.comm));
  return result;
}

}  // namespace tierpilot
