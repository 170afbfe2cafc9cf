// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// NUMA-hint faults, for the machine and for the tracked process groups.
#include <linux/ptrace.h>

#include "bpf/kernel.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/linux/sched/numa_balancing.h */
#define TNF_MIGRATED 0x01

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_numa_hint_stats);
} tp_hints SEC(".maps");

/* By process group; the daemon makes and removes the entries, so none is allocated ahead. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __s32);
  __type(value, struct tp_numa_hint_stats);
} tp_hint_groups SEC(".maps");

TP_INLINE void tp_add_hint(struct tp_numa_hint_stats* stats, __u32 slot, __u32 pages, __u32 flags) {
  stats->faults++;
  stats->pages += pages;
  stats->migrated_pages += flags & TNF_MIGRATED ? pages : 0;
  /* Masked: bounded a second time, a value has no range that the verifier of 6.1 believes. */
  stats->pages_by_node[slot & (TP_NODES - 1)] += pages;
}

/* task_numa_fault(last_cpupid, mem_node, pages, flags): runs in the task that faulted. */
TP_INLINE int tp_count_hint(__u32 node, __u32 pages, __u32 flags) {
  __u32 zero = 0, slot = TP_BOUNDED(node, TP_NODES);
  struct tp_numa_hint_stats* machine = bpf_map_lookup_elem(&tp_hints, &zero);
  if (machine) tp_add_hint(machine, slot, pages, flags);
  __s32 pgid = tp_current_pgid();
  struct tp_numa_hint_stats* group = bpf_map_lookup_elem(&tp_hint_groups, &pgid);
  if (group) tp_add_hint(group, slot, pages, flags);
  return 0;
}

SEC("fentry/task_numa_fault")
int tp_hint_fentry(tp_args* ctx) {
  return tp_count_hint((__u32)ctx[1], (__u32)ctx[2], (__u32)ctx[3]);
}

SEC("kprobe/task_numa_fault")
int tp_hint_kprobe(struct pt_regs* ctx) {
  return tp_count_hint((__u32)PT_REGS_PARM2(ctx), (__u32)PT_REGS_PARM3(ctx),
                       (__u32)PT_REGS_PARM4(ctx));
}
