// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Compaction of a zone, and who waits for it: the machine and the tracked process groups.
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Start times by thread id. Bounded by the threads that compact at the same moment. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, __u64);
} tp_compacting SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_compact_stats);
} tp_compactions SEC(".maps");

/* By process group; the daemon makes and removes the entries, so none is allocated ahead. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __s32);
  __type(value, struct tp_compact_stats);
} tp_compact_grps SEC(".maps");

/* mm_compaction_begin(cc, zone_start, zone_end, sync) */
SEC("raw_tp/mm_compaction_begin")
int tp_compact_begin(tp_args* ctx) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  __u64 start_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&tp_compacting, &tid, &start_ns, BPF_ANY);
  return 0;
}

/* mm_compaction_end(cc, zone_start, zone_end, sync, status) */
SEC("raw_tp/mm_compaction_end")
int tp_compact_end(tp_args* ctx) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid(), zero = 0;
  __u64* start_ns = bpf_map_lookup_elem(&tp_compacting, &tid);
  __u64 duration_ns = start_ns ? bpf_ktime_get_ns() - *start_ns : 0;
  if (start_ns) bpf_map_delete_elem(&tp_compacting, &tid);
  struct task_struct* task = bpf_get_current_task_btf();
  enum tp_compact_kind kind = task->flags & PF_KTHREAD ? TP_COMPACT_BACKGROUND : TP_COMPACT_DIRECT;

  struct tp_compact_stats* machine = bpf_map_lookup_elem(&tp_compactions, &zero);
  if (machine) {
    machine->kinds[kind].calls++;
    machine->untimed += !duration_ns;
    if (duration_ns) tp_hist_add(&machine->kinds[kind].duration_ns, duration_ns);
  }
  __s32 pgid = tp_pgid_of(task);
  struct tp_compact_stats* group = bpf_map_lookup_elem(&tp_compact_grps, &pgid);
  if (!group) return 0;
  __sync_fetch_and_add(&group->kinds[kind].calls, 1);
  __sync_fetch_and_add(&group->untimed, !duration_ns);
  if (duration_ns) tp_hist_add_shared(&group->kinds[kind].duration_ns, duration_ns);
  return 0;
}
