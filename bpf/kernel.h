/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel fields that the programs read, declared by hand: CO-RE finds their real offsets in
 * the running kernel's BTF, so neither order nor missing fields matter. Valid for 6.1 to 6.18.
 */
#ifndef TIERPILOT_BPF_KERNEL_H
#define TIERPILOT_BPF_KERNEL_H

#include "bpf/common.h"

#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID, PIDTYPE_MAX };

struct ns_common {
  unsigned int inum;
};

struct pid_namespace {
  struct ns_common ns;
};

struct upid {
  int nr;
  struct pid_namespace* ns;
};

struct pid {
  unsigned int level;
  struct upid numbers[1];
};

struct signal_struct {
  struct pid* pids[PIDTYPE_MAX];
};

struct task_struct {
  unsigned int flags;
  unsigned long min_flt;
  unsigned long maj_flt;
  struct signal_struct* signal;
};

struct kernfs_node {
  __u64 id;
};

struct cgroup {
  struct kernfs_node* kn;
};

struct cgroup_subsys_state {
  struct cgroup* cgroup;
};

struct blkcg {
  struct cgroup_subsys_state css;
};

struct blkcg_gq {
  struct blkcg* blkcg;
};

struct bio {
  struct blkcg_gq* bi_blkg;
};

struct request {
  unsigned int cmd_flags;
  unsigned int __data_len;
  struct bio* bio;
};

#pragma clang attribute pop

/* The pid namespace that the daemon lives in, whose numbers it knows; 0: the machine's own. */
const volatile __u32 tp_pidns_inum = 0;

/* task_struct.flags, as in include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

/* A task's process group as the daemon numbers it, 0 when the daemon cannot see it. */
TP_INLINE __s32 tp_pgid_of(struct task_struct* task) {
  struct pid* pid = task->signal->pids[PIDTYPE_PGID];
  /* Plain loads work even under lockdown=confidentiality; bpf_probe_read_kernel does not. */
  if (tp_pidns_inum == 0) return pid->numbers[0].nr;
  /* A flexible array: the verifier of 6.1 allows no plain load behind its first element. */
  const struct upid* deepest =
      (const void*)&pid->numbers[0] + pid->level * bpf_core_type_size(struct upid);
  if (BPF_CORE_READ(deepest, ns, ns.inum) != tp_pidns_inum) return 0;
  return BPF_CORE_READ(deepest, nr);
}

TP_INLINE __s32 tp_current_pgid(void) {
  return tp_pgid_of(bpf_get_current_task_btf());
}

#endif /* TIERPILOT_BPF_KERNEL_H */
