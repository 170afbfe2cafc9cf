/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of migrate_pages() in progress. Kernel side only. */
#ifndef TIERPILOT_BPF_MIGRATING_H
#define TIERPILOT_BPF_MIGRATING_H

#include "bpf/common.h"

/* Of calls that move one small page, one of so many is timed, by chance: the others are spared two
 * readings of the clock. */
const volatile __u32 tp_single_period = 8;

/*
 * By thread id: four slots to each remainder, so that hardly ever a thread finds them taken.
 * No hash table, whose entry would be made and deleted for each call. One map for both objects: the
 * loader passes migration's to the other.
 */
#define TP_MIGRATING_SETS 256
#define TP_MIGRATING_WAYS 4

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TP_MIGRATING_SETS* TP_MIGRATING_WAYS);
  __type(key, __u32);
  __type(value, struct tp_migrate_slot);
} tp_migrating SEC(".maps");

TP_INLINE struct tp_migrate_slot* tp_migrating_way(__u32 tid, __u32 way) {
  __u32 index = (tid & (TP_MIGRATING_SETS - 1)) * TP_MIGRATING_WAYS + way;
  return bpf_map_lookup_elem(&tp_migrating, &index);
}

TP_INLINE void tp_start_clock(struct tp_migrate_slot* slot, bool single) {
  slot->start_ns = 0;
  slot->weight = 1;
  if (single && tp_single_period > 1) {
    if (slot->turn > 1) {
      --slot->turn;
      return;
    }
    slot->turn = 1 + bpf_get_prandom_u32() % (2 * tp_single_period - 1);
    slot->weight = tp_single_period;
  }
  slot->start_ns = bpf_ktime_get_ns();
}

/* `single`: it moves one small page. */
TP_INLINE int tp_migrate_enter(const struct tp_migrate_call* call, bool single) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
#pragma unroll
  for (__u32 way = 0; way < TP_MIGRATING_WAYS; ++way) {
    struct tp_migrate_slot* slot = tp_migrating_way(tid, way);
    if (!slot) return 0;
    if (slot->tid != tid) {
      if (slot->tid || __sync_val_compare_and_swap(&slot->tid, 0, tid)) continue;
      tp_start_clock(slot, single);
    }
    /* A target page may be reclaimed for, and reclaim may demote: calls nest in one thread. The
     * depth of a free slot is 0; clang 14 drops a store of it behind the compare-and-swap. */
    __u32 depth = slot->depth++;
    if (depth < TP_MIGRATE_DEPTH) slot->calls[TP_BOUNDED(depth, TP_MIGRATE_DEPTH)] = *call;
    return 0;
  }
  return 0;
}

/* What is known of the call that ends. */
struct tp_migrate_end {
  struct tp_migrate_call call;
  __u64 duration_ns; /* 0: not timed */
  __u64 weight;      /* 0: nested in another one, or its start was not seen */
};

TP_INLINE struct tp_migrate_end tp_migrate_leave(void) {
  struct tp_migrate_end end = {.call = {.nodes = {TP_NO_NODE, TP_NO_NODE}}};
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
#pragma unroll
  for (__u32 way = 0; way < TP_MIGRATING_WAYS; ++way) {
    struct tp_migrate_slot* slot = tp_migrating_way(tid, way);
    if (!slot) return end;
    if (slot->tid != tid) continue;
    __u32 inner = --slot->depth;
    if (inner < TP_MIGRATE_DEPTH) end.call = slot->calls[TP_BOUNDED(inner, TP_MIGRATE_DEPTH)];
    if (inner > 0) return end;
    end.weight = slot->weight;
    if (slot->start_ns) end.duration_ns = bpf_ktime_get_ns() - slot->start_ns;
    slot->tid = 0;
    return end;
  }
  return end;
}

#endif /* TIERPILOT_BPF_MIGRATING_H */
