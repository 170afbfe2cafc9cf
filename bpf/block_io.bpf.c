// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Block I/O from issue to completion, for the machine and for the tracked process groups.
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* include/linux/blk_types.h: the low byte of cmd_flags is the operation. */
#define REQ_OP_MASK 0xff
#define REQ_OP_READ 0
#define REQ_OP_WRITE 1

struct tp_request {
  __u64 issue_ns; /* 0: waits in the I/O scheduler */
  __s32 group;    /* 0: of no tracked group */
  __u32 unused;
};

/* By address of the request. Bounded by the requests in flight. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, __u64);
  __type(value, struct tp_request);
} tp_requests SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_io_stats);
} tp_io SEC(".maps");

/* By process group. Completions of a group come on any CPU, so its counters are added to
 * atomically. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __s32);
  __type(value, struct tp_io_stats);
} tp_io_groups SEC(".maps");

/* From cgroup id to process group: what kernel threads write back for a tracked group. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __u64);
  __type(value, __s32);
} tp_io_cgroups SEC(".maps");

TP_INLINE __s32 tp_group_of(struct request* rq) {
  __s32 pgid = tp_current_pgid();
  if (bpf_map_lookup_elem(&tp_io_groups, &pgid)) return pgid;
  if (!bpf_core_field_exists(struct bio, bi_blkg)) return 0;
  __u64 cgroup = rq->bio->bi_blkg->blkcg->css.cgroup->kn->id;
  __s32* group = bpf_map_lookup_elem(&tp_io_cgroups, &cgroup);
  return group ? *group : 0;
}

/* block_rq_insert(rq): runs in the submitting task; the issue may come from a kernel worker. */
SEC("raw_tp/block_rq_insert")
int tp_io_insert(tp_args* ctx) {
  struct request* rq = (void*)ctx[0];
  __u64 key = (__u64)rq;
  struct tp_request request = {.group = tp_group_of(rq)};
  bpf_map_update_elem(&tp_requests, &key, &request, BPF_ANY);
  return 0;
}

/* block_rq_issue(rq): also for a request that never was in a scheduler. */
SEC("raw_tp/block_rq_issue")
int tp_io_issue(tp_args* ctx) {
  struct request* rq = (void*)ctx[0];
  __u64 key = (__u64)rq;
  struct tp_request* queued = bpf_map_lookup_elem(&tp_requests, &key);
  if (queued) {
    queued->issue_ns = bpf_ktime_get_ns();
    return 0;
  }
  struct tp_request request = {.issue_ns = bpf_ktime_get_ns(), .group = tp_group_of(rq)};
  bpf_map_update_elem(&tp_requests, &key, &request, BPF_ANY);
  return 0;
}

TP_INLINE __u32 tp_op(struct request* rq) {
  __u32 op = rq->cmd_flags & REQ_OP_MASK;
  return op == REQ_OP_READ ? TP_IO_READ : op == REQ_OP_WRITE ? TP_IO_WRITE : TP_IO_OTHER;
}

/* block_rq_complete(rq, status, nr_bytes): once for each part of a request. */
SEC("raw_tp/block_rq_complete")
int tp_io_complete(tp_args* ctx) {
  struct request* rq = (void*)ctx[0];
  __u64 key = (__u64)rq, now_ns = bpf_ktime_get_ns();
  bool failed = (__u8)ctx[1] != 0;
  __u32 bytes = (__u32)ctx[2], zero = 0, op = tp_op(rq);
  bool last = bytes >= rq->__data_len;

  struct tp_request* request = bpf_map_lookup_elem(&tp_requests, &key);
  __u64 latency_ns = request && request->issue_ns ? now_ns - request->issue_ns : 0;
  __s32 group = request ? request->group : 0;
  if (last) bpf_map_delete_elem(&tp_requests, &key);

  struct tp_io_stats* machine = bpf_map_lookup_elem(&tp_io, &zero);
  if (machine) {
    machine->ops[op].requests += last;
    machine->ops[op].bytes += failed ? 0 : bytes;
    machine->ops[op].errors += failed;
    if (last && latency_ns) tp_hist_add(&machine->latency_ns, latency_ns);
    machine->untimed += last && !latency_ns;
  }
  struct tp_io_stats* mine = group ? bpf_map_lookup_elem(&tp_io_groups, &group) : 0;
  if (!mine) return 0;
  __sync_fetch_and_add(&mine->ops[op].requests, last);
  __sync_fetch_and_add(&mine->ops[op].bytes, failed ? 0 : bytes);
  __sync_fetch_and_add(&mine->ops[op].errors, failed);
  if (last && latency_ns) tp_hist_add_shared(&mine->latency_ns, latency_ns);
  return 0;
}
