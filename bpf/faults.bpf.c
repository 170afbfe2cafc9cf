// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page faults of user code, for the machine and for the tracked process groups.
#include <linux/bpf_perf_event.h>

#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_fault_stats);
} tp_faults SEC(".maps");

/* By process group; the daemon makes and removes the entries, so none is allocated ahead. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __s32);
  __type(value, struct tp_fault_stats);
} tp_fault_groups SEC(".maps");

TP_INLINE int tp_count_fault(__u64 faults, __u64 major) {
  __u32 zero = 0;
  struct tp_fault_stats* stats = bpf_map_lookup_elem(&tp_faults, &zero);
  if (stats) {
    stats->faults += faults;
    stats->major += major;
  }
  __s32 pgid = tp_current_pgid();
  struct tp_fault_stats* group = bpf_map_lookup_elem(&tp_fault_groups, &pgid);
  if (group) {
    group->faults += faults;
    group->major += major;
  }
  return 0;
}

/* page_fault_user(address, regs, error_code): x86 only until 6.16 */
SEC("raw_tp/page_fault_user")
int tp_fault_user(tp_args* ctx) {
  return tp_count_fault(1, 0);
}

/* In its place where there is no such tracepoint: every n-th software page fault. */
SEC("perf_event")
int tp_fault_sample(struct bpf_perf_event_data* ctx) {
  return tp_count_fault(ctx->sample_period, 0);
}

/* Faults that waited for I/O, each. */
SEC("perf_event")
int tp_fault_major(struct bpf_perf_event_data* ctx) {
  return tp_count_fault(0, ctx->sample_period);
}
