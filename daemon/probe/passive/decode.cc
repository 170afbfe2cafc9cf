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

}  // namespace

std::string name_of(const EnumNames& names, uint32_t value) {
  const auto found = names.find(value);
  return found == names.end() ? fmt::format("#{}", value) : found->second;
}

std::optional<int> decode_node(int32_t node) {
  return node < 0 ? std::nullopt : std::optional<int>(node);
}

MigrationStats::Reason decode_migrate_reason(const tp_migrate_reason& stats) {
  return {.calls = stats.calls,
          .pages_moved = stats.pages_moved,
          .pages_failed = stats.pages_failed,
          .timed_pages = stats.timed_pages,
          .busy_ns = stats.busy_ns};
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

MigrationStats decode_migration(const tp_migrate_stats& stats, const EnumNames& reasons,
                                const EnumNames& modes) {
  MigrationStats result;
  result.calls = stats.calls;
  result.pages_moved = stats.pages_moved;
  result.pages_failed = stats.pages_failed;
  result.untimed_calls = stats.untimed;
  result.duration_ns = decode_histogram(stats.duration_ns);
  for (uint32_t i = 0; i < TP_MIGRATE_REASONS; ++i) {
    const tp_migrate_reason& from = stats.by_reason[i];
    if (from.calls == 0) continue;
    const auto name = name_of(reasons, i);
    result.pages_by_reason[name] = from.pages_moved;
    result.by_reason[name] = decode_migrate_reason(from);
  }
  for (uint32_t i = 0; i < TP_MIGRATE_MODES; ++i)
    if (stats.calls_by_mode[i] > 0)
      result.calls_by_mode[name_of(modes, i)] = stats.calls_by_mode[i];
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
