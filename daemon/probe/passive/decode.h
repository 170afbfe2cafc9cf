// From the kernel's counters (bpf/intf.h) to values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "bpf/intf.h"
#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot {

// Values by number, as the kernel's BTF names them.
using EnumNames = std::map<uint32_t, std::string>;

// Each bucket's count goes to the bucket's middle: quantiles are within 1/8 of the truth.
Histogram decode_histogram(const tp_hist& hist);
// `counts` in the order of bpf/pairs.h, for node ids below `nodes`. Pairs without calls are left
// out.
MigrationCounts decode_pairs(std::span<const tp_migrate_counts> counts, uint32_t nodes,
                             const EnumNames& reasons);
MigrationStats decode_migration(const tp_migrate_stats& stats, MigrationCounts counts);
// Nothing for TP_NO_NODE.
std::optional<int> decode_node(int32_t node);
std::string name_of(const EnumNames& names, uint32_t value);
ReclaimStats decode_reclaim(const tp_reclaim_stats& stats);
CompactionStats decode_compaction(const tp_compact_stats& stats);
NumaHintStats decode_numa_hint(const tp_numa_hint_stats& stats);
BlockIoStats decode_block_io(const tp_io_stats& stats);
// Nothing when the record is not one of ours.
std::optional<PassiveEvent> decode_event(const void* data, size_t size, const EnumNames& reasons);

}  // namespace tierpilot
