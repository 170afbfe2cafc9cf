// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page faults of the tracked process groups: the kernel's own counts of their tasks, the living and
// the dead. A program at each fault would cost some 6 % of it.
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_iter_meta {
  struct seq_file* seq;
} __attribute__((preserve_access_index));

/* By process group: what its dead tasks had. The daemon makes and removes the entries, so none is
 * allocated ahead. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __s32);
  __type(value, struct tp_fault_stats);
} tp_fault_groups SEC(".maps");

/* sched_process_exit(task[, group_dead]): once per thread, which has set PF_EXITING before. */
SEC("raw_tp/sched_process_exit")
int tp_fault_exit(tp_args* ctx) {
  struct task_struct* task = bpf_get_current_task_btf();
  __s32 pgid = tp_pgid_of(task);
  struct tp_fault_stats* dead = bpf_map_lookup_elem(&tp_fault_groups, &pgid);
  if (!dead) return 0;
  __sync_fetch_and_add(&dead->faults, task->min_flt + task->maj_flt);
  __sync_fetch_and_add(&dead->major, task->maj_flt);
  return 0;
}

/* struct bpf_iter__task {meta, task}; task is null at the end */
SEC("iter/task")
int tp_fault_walk(tp_args* ctx) {
  struct bpf_iter_meta* meta = (void*)ctx[0];
  struct task_struct* task = (void*)ctx[1];
  if (!task || task->flags & PF_EXITING) return 0;
  struct tp_fault_record record = {.pgid = tp_pgid_of(task)};
  if (!bpf_map_lookup_elem(&tp_fault_groups, &record.pgid)) return 0;
  record.stats.major = task->maj_flt;
  record.stats.faults = task->min_flt + task->maj_flt;
  bpf_seq_write(meta->seq, &record, sizeof(record));
  return 0;
}
