// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// How long the kernel's handle_mm_fault() takes, by the node of the page that it allocates: one
// of n faults, by chance.
#include <linux/ptrace.h>

#include "bpf/kernel.h"
#include "bpf/nodes.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 tp_fault_period = 16;

/* include/linux/gfp_types.h: pages of programs are movable, those of page tables are not. */
#define GFP_MOVABLE 0x08u

/* Faults that are being timed: while there are none, programs do no more than look here. */
__u64 tp_timing = 0;

/* Drawn, but not timed: the thread's outer fault is being timed, or there was no room. */
__u64 tp_untimed = 0;

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} tp_fault_turn SEC(".maps");

/* By thread id. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, struct tp_fault_frame);
} tp_faulting SEC(".maps");

/* By node; the last one is of faults that allocate no page of their own. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, TP_NODES + 1);
  __type(key, __u32);
  __type(value, struct tp_hist);
} tp_fault_ns SEC(".maps");

/* Tracked owners, and how many of their durations found no room in tp_fault_owned. The daemon makes
 * and removes the entries. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __u64);
  __type(value, __u64);
} tp_fault_owners SEC(".maps");

/* Their durations, by owner and node as in tp_fault_ns. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 4096);
  __type(key, struct tp_owner_key);
  __type(value, struct tp_hist);
} tp_fault_owned SEC(".maps");

/* Too large for a stack. */
static const struct tp_hist tp_no_durations = {};

/* Of a fault whose end was missed, as this thread is in another one: it would last until that ends.
 */
TP_INLINE void tp_drop_missed(void) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  if (!bpf_map_lookup_elem(&tp_faulting, &tid)) return;
  bpf_map_delete_elem(&tp_faulting, &tid);
  __sync_fetch_and_add(&tp_timing, -1);
  __sync_fetch_and_add(&tp_untimed, 1);
}

TP_INLINE int tp_fault_begin(void) {
  if (tp_timing != 0) tp_drop_missed();
  __u32 zero = 0;
  __u64* turn = bpf_map_lookup_elem(&tp_fault_turn, &zero);
  if (!turn) return 0;
  if (*turn > 1) {
    --*turn;
    return 0;
  }
  /* By chance, on average each period: faults come in patterns (a read's, then a write's), and an
   * even pace would see one half of them only. */
  *turn = 1 + bpf_get_prandom_u32() % (2 * tp_fault_period - 1);
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_fault_frame frame = {.start_ns = bpf_ktime_get_ns(), .node = TP_NO_NODE};
  if (bpf_map_update_elem(&tp_faulting, &tid, &frame, BPF_NOEXIST) == 0)
    __sync_fetch_and_add(&tp_timing, 1);
  else
    __sync_fetch_and_add(&tp_untimed, 1);
  return 0;
}

TP_INLINE void tp_time_for_owner(__u64 owner, __u32 slot, __u64 duration_ns) {
  __u64* lost = bpf_map_lookup_elem(&tp_fault_owners, &owner);
  if (!lost) return;
  struct tp_owner_key key = {.owner = owner, .index = slot};
  struct tp_hist* hist = bpf_map_lookup_elem(&tp_fault_owned, &key);
  if (!hist) {
    bpf_map_update_elem(&tp_fault_owned, &key, &tp_no_durations, BPF_NOEXIST);
    hist = bpf_map_lookup_elem(&tp_fault_owned, &key);
  }
  if (hist)
    tp_hist_add_shared(hist, duration_ns);
  else
    __sync_fetch_and_add(lost, 1);
}

TP_INLINE int tp_fault_end(void) {
  if (tp_timing == 0) return 0;
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_fault_frame* frame = bpf_map_lookup_elem(&tp_faulting, &tid);
  if (!frame) return 0;
  __u64 duration_ns = bpf_ktime_get_ns() - frame->start_ns;
  __u32 slot = TP_NODES;
  if (frame->node >= 0) slot = TP_BOUNDED((__u32)frame->node, TP_NODES);
  bpf_map_delete_elem(&tp_faulting, &tid);
  __sync_fetch_and_add(&tp_timing, -1);
  struct tp_hist* hist = bpf_map_lookup_elem(&tp_fault_ns, &slot);
  if (hist) tp_hist_add_shared(hist, duration_ns);
  tp_time_for_owner(TP_OWNER_GROUP | (__u32)tp_current_pgid(), slot, duration_ns);
  tp_time_for_owner(bpf_get_current_cgroup_id(), slot, duration_ns);
  return 0;
}

/* mm_page_alloc(page, order, gfp_flags, migratetype): page is null when there was none. */
SEC("raw_tp/mm_page_alloc")
int tp_fault_alloc(tp_args* ctx) {
  if (tp_timing == 0 || !(ctx[2] & GFP_MOVABLE)) return 0;
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_fault_frame* frame = bpf_map_lookup_elem(&tp_faulting, &tid);
  if (frame) frame->node = tp_node_of_page((const void*)ctx[0]);
  return 0;
}

SEC("fentry/handle_mm_fault")
int tp_fault_fentry(tp_args* ctx) {
  return tp_fault_begin();
}

SEC("fexit/handle_mm_fault")
int tp_fault_fexit(tp_args* ctx) {
  return tp_fault_end();
}

SEC("kprobe/handle_mm_fault")
int tp_fault_kprobe(struct pt_regs* ctx) {
  return tp_fault_begin();
}

SEC("kretprobe/handle_mm_fault")
int tp_fault_kret(struct pt_regs* ctx) {
  return tp_fault_end();
}
