/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of migrate_pages() in progress. Kernel side only. */
#ifndef TIERPILOT_BPF_MIGRATING_H
#define TIERPILOT_BPF_MIGRATING_H

#include "bpf/common.h"

/* The kernel skips a program that already runs on the CPU, so an end may be missed. */
#define TP_LOST_NS (10ull * 1000 * 1000 * 1000)

/* By thread id. Bounded by the threads that migrate at the same moment. One map for both objects:
 * the loader passes migration's to migration_nodes. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, struct tp_migrate_frame);
} tp_migrating SEC(".maps");

TP_INLINE int tp_migrate_enter(struct tp_migrate_nodes nodes) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_migrate_frame* outer = bpf_map_lookup_elem(&tp_migrating, &tid);
  __u64 now_ns = bpf_ktime_get_ns();
  /* A target page may be reclaimed for, and reclaim may demote: calls nest in one thread. */
  if (outer && now_ns - outer->start_ns < TP_LOST_NS) {
    __u64 depth = outer->depth++;
    if (depth < TP_MIGRATE_DEPTH) outer->nodes[TP_BOUNDED(depth, TP_MIGRATE_DEPTH)] = nodes;
    return 0;
  }
  struct tp_migrate_frame frame = {.start_ns = now_ns, .depth = 1, .nodes = {nodes}};
  bpf_map_update_elem(&tp_migrating, &tid, &frame, BPF_ANY);
  return 0;
}

#endif /* TIERPILOT_BPF_MIGRATING_H */
