/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of migrate_pages() in progress. Kernel side only. */
#ifndef TIERPILOT_BPF_MIGRATING_H
#define TIERPILOT_BPF_MIGRATING_H

#include "bpf/common.h"

/* Of so many calls that move one small page, one is timed, drawn by chance: the others are spared
 * two readings of the clock. */
const volatile __u32 tp_single_period = 8;

/* Calls that found no slot, and so have neither nodes nor a duration. */
__u64 tp_lost_calls = 0;

/*
 * By thread id: four slots to each remainder, so that hardly ever a thread finds them taken.
 * No hash table, whose entry would be made and deleted for each call. One map for both objects: the
 * loader passes migration's to the other.
 */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TP_MIGRATING_SETS);
  __type(key, __u32);
  __type(value, struct tp_migrate_set);
} tp_migrating SEC(".maps");

TP_INLINE struct tp_migrate_set* tp_migrating_set(__u32 tid) {
  __u32 index = tid & (TP_MIGRATING_SETS - 1);
  return bpf_map_lookup_elem(&tp_migrating, &index);
}

/* Stratified sampling: one of each tp_single_period calls, so that every call has the same chance,
 * the first of a slot too. */
TP_INLINE bool tp_is_drawn(struct tp_migrate_slot* slot) {
  if (!slot->left) {
    slot->left = tp_single_period;
    slot->drawn = 1 + bpf_get_prandom_u32() % tp_single_period;
  }
  return slot->left-- == slot->drawn;
}

TP_INLINE void tp_start_clock(struct tp_migrate_slot* slot, bool single) {
  slot->start_ns = 0;
  slot->weight = 1;
  if (single && tp_single_period > 1) {
    if (!tp_is_drawn(slot)) return;
    slot->weight = tp_single_period;
  }
  slot->start_ns = bpf_ktime_get_ns();
}

/* A target page may be reclaimed for, and reclaim may demote: calls nest in one thread. */
TP_INLINE bool tp_enter_nested(struct tp_migrate_set* set, __u32 tid,
                               const struct tp_migrate_call* call) {
#pragma unroll
  for (__u32 way = 0; way < TP_MIGRATING_WAYS; ++way) {
    if (set->tids[way] != tid) continue;
    struct tp_migrate_slot* slot = &set->slots[way];
    __u64 depth = slot->depth++;
    if (depth < TP_MIGRATE_DEPTH) slot->calls[TP_BOUNDED(depth, TP_MIGRATE_DEPTH)] = *call;
    return true;
  }
  return false;
}

/* `single`: it moves one small page. */
TP_INLINE int tp_migrate_enter(const struct tp_migrate_call* call, bool single) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_migrate_set* set = tp_migrating_set(tid);
  /* All ways before a free one: its own may be a later one. */
  if (!set || tp_enter_nested(set, tid, call)) return 0;
#pragma unroll
  for (__u32 way = 0; way < TP_MIGRATING_WAYS; ++way) {
    if (set->tids[way] || __sync_val_compare_and_swap(&set->tids[way], 0, tid)) continue;
    struct tp_migrate_slot* slot = &set->slots[way];
    slot->calls[0] = *call;
    tp_start_clock(slot, single);
    /* clang 14 drops a store of a constant right behind the compare-and-swap, even a volatile. */
    __u64 depth = 1;
    barrier_var(depth);
    slot->depth = depth;
    return 0;
  }
  __sync_fetch_and_add(&tp_lost_calls, 1);
  return 0;
}

/* What is known of the call that ends. */
struct tp_migrate_end {
  struct tp_migrate_call call;
  __u64 duration_ns; /* 0: not timed */
  __u64 weight;      /* 0: nested in another one, or no slot is its own */
};

TP_INLINE struct tp_migrate_end tp_migrate_leave(void) {
  struct tp_migrate_end end = {.call = {.nodes = {TP_NO_NODE, TP_NO_NODE}}};
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_migrate_set* set = tp_migrating_set(tid);
  if (!set) return end;
#pragma unroll
  for (__u32 way = 0; way < TP_MIGRATING_WAYS; ++way) {
    if (set->tids[way] != tid) continue;
    struct tp_migrate_slot* slot = &set->slots[way];
    __u64 inner = --slot->depth;
    if (inner < TP_MIGRATE_DEPTH) end.call = slot->calls[TP_BOUNDED(inner, TP_MIGRATE_DEPTH)];
    if (inner > 0) return end;
    end.weight = slot->weight;
    if (slot->start_ns) end.duration_ns = bpf_ktime_get_ns() - slot->start_ns;
    /* An exchange orders what comes before it, which a plain store does not. */
    __sync_lock_test_and_set(&set->tids[way], 0);
    return end;
  }
  return end;
}

#endif /* TIERPILOT_BPF_MIGRATING_H */
