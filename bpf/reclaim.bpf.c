// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Reclaim: how long allocations wait for pages, for the machine and for the tracked process groups,
// and how often kswapd is woken.
#include "bpf/events.h"
#include "bpf/kernel.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A reclaim that an allocation waited for at least so long is an event. */
const volatile __u64 tp_event_ns = 10 * 1000 * 1000;

/* Start times by thread id. Bounded by the threads that wait at the same moment. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, __u32);
  __type(value, __u64);
} tp_reclaiming SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_reclaim_stats);
} tp_reclaims SEC(".maps");

/* By process group; the daemon makes and removes the entries, so none is allocated ahead. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __s32);
  __type(value, struct tp_reclaim_stats);
} tp_reclaim_grps SEC(".maps");

TP_INLINE int tp_reclaim_begin(void) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  __u64 start_ns = bpf_ktime_get_ns();
  bpf_map_update_elem(&tp_reclaiming, &tid, &start_ns, BPF_ANY);
  return 0;
}

TP_INLINE void tp_reclaim_of_group(enum tp_reclaim_kind kind, __u64 pages, __u64 duration_ns) {
  __s32 pgid = tp_current_pgid();
  struct tp_reclaim_stats* group = bpf_map_lookup_elem(&tp_reclaim_grps, &pgid);
  if (!group) return;
  __sync_fetch_and_add(&group->kinds[kind].calls, 1);
  __sync_fetch_and_add(&group->kinds[kind].pages, pages);
  __sync_fetch_and_add(&group->untimed, !duration_ns);
  if (duration_ns) tp_hist_add_shared(&group->kinds[kind].duration_ns, duration_ns);
}

TP_INLINE int tp_reclaim_end(enum tp_reclaim_kind kind, __u64 pages) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid(), zero = 0;
  __u64* start_ns = bpf_map_lookup_elem(&tp_reclaiming, &tid);
  __u64 duration_ns = start_ns ? bpf_ktime_get_ns() - *start_ns : 0;
  if (start_ns) bpf_map_delete_elem(&tp_reclaiming, &tid);
  tp_reclaim_of_group(kind, pages, duration_ns);
  struct tp_reclaim_stats* stats = bpf_map_lookup_elem(&tp_reclaims, &zero);
  if (!stats) return 0;
  stats->kinds[kind].calls++;
  stats->kinds[kind].pages += pages;
  stats->untimed += !duration_ns;
  if (!duration_ns) return 0;
  tp_hist_add(&stats->kinds[kind].duration_ns, duration_ns);
  struct tp_migrate_nodes none = {TP_NO_NODE, TP_NO_NODE};
  if (duration_ns >= tp_event_ns) tp_emit(TP_EVENT_RECLAIM, kind, none, duration_ns, pages, 0);
  return 0;
}

/* ..._begin(order, gfp_flags) and ..._end(nr_reclaimed) */
SEC("raw_tp/mm_vmscan_direct_reclaim_begin")
int tp_direct_begin(tp_args* ctx) {
  return tp_reclaim_begin();
}

SEC("raw_tp/mm_vmscan_direct_reclaim_end")
int tp_direct_end(tp_args* ctx) {
  return tp_reclaim_end(TP_RECLAIM_DIRECT, ctx[0]);
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_begin")
int tp_memcg_begin(tp_args* ctx) {
  return tp_reclaim_begin();
}

SEC("raw_tp/mm_vmscan_memcg_reclaim_end")
int tp_memcg_end(tp_args* ctx) {
  return tp_reclaim_end(TP_RECLAIM_MEMCG, ctx[0]);
}

/* mm_vmscan_kswapd_wake(nid, zid, order) */
SEC("raw_tp/mm_vmscan_kswapd_wake")
int tp_kswapd_wake(tp_args* ctx) {
  __u32 zero = 0;
  struct tp_reclaim_stats* stats = bpf_map_lookup_elem(&tp_reclaims, &zero);
  if (stats) stats->kswapd_wakes++;
  return 0;
}
