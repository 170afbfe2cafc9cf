// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page migration: one call of the kernel's migrate_pages() from its start to its result. Needs no
// BTF of the kernel.
#include "bpf/events.h"
#include "bpf/migrating.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A migration of at least so many pages (moved and failed) is an event. */
const volatile __u64 tp_event_pages = 512;

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_migrate_stats);
} tp_migrations SEC(".maps");

/* Bounded: nodes are few, and so are reasons. What finds no room is in the totals. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, struct tp_migrate_pair);
  __type(value, struct tp_migrate_reason);
} tp_migr_pairs SEC(".maps");

/* mm_migrate_pages_start(mode, reason): where migration_nodes cannot run */
SEC("raw_tp/mm_migrate_pages_start")
int tp_migr_start(tp_args* ctx) {
  struct tp_migrate_nodes unknown = {TP_NO_NODE, TP_NO_NODE};
  return tp_migrate_enter(unknown);
}

struct tp_migrate_call {
  __u64 duration_ns; /* 0: nested in another one, or its start was not seen */
  struct tp_migrate_nodes nodes;
};

TP_INLINE struct tp_migrate_call tp_migrate_leave(void) {
  struct tp_migrate_call call = {0, {TP_NO_NODE, TP_NO_NODE}};
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_migrate_frame* frame = bpf_map_lookup_elem(&tp_migrating, &tid);
  if (!frame) return call;
  __u64 inner = --frame->depth;
  if (inner < TP_MIGRATE_DEPTH) call.nodes = frame->nodes[TP_BOUNDED(inner, TP_MIGRATE_DEPTH)];
  if (inner > 0) return call;
  call.duration_ns = bpf_ktime_get_ns() - frame->start_ns;
  bpf_map_delete_elem(&tp_migrating, &tid);
  return call;
}

TP_INLINE void tp_count_pair(const struct tp_migrate_call* call, __u32 reason, __u64 moved,
                             __u64 failed) {
  if (call->nodes.from == TP_NO_NODE && call->nodes.to == TP_NO_NODE) return;
  struct tp_migrate_pair key = {.nodes = call->nodes, .reason = reason};
  struct tp_migrate_reason* pair = bpf_map_lookup_elem(&tp_migr_pairs, &key);
  if (!pair) {
    struct tp_migrate_reason zeros = {};
    bpf_map_update_elem(&tp_migr_pairs, &key, &zeros, BPF_NOEXIST);
    pair = bpf_map_lookup_elem(&tp_migr_pairs, &key);
    if (!pair) return;
  }
  __sync_fetch_and_add(&pair->calls, 1);
  __sync_fetch_and_add(&pair->pages_moved, moved);
  __sync_fetch_and_add(&pair->pages_failed, failed);
  __sync_fetch_and_add(&pair->timed_pages, call->duration_ns ? moved : 0);
  __sync_fetch_and_add(&pair->busy_ns, call->duration_ns);
}

TP_INLINE int tp_migrate_result(__u64 moved, __u64 failed, __u32 mode, __u32 reason) {
  struct tp_migrate_call call = tp_migrate_leave();
  tp_count_pair(&call, reason, moved, failed);
  __u32 zero = 0;
  struct tp_migrate_stats* stats = bpf_map_lookup_elem(&tp_migrations, &zero);
  if (!stats) return 0;
  stats->calls++;
  stats->pages_moved += moved;
  stats->pages_failed += failed;
  if (mode < TP_MIGRATE_MODES) stats->calls_by_mode[TP_BOUNDED(mode, TP_MIGRATE_MODES)]++;
  struct tp_migrate_reason* by_reason = &stats->by_reason[TP_BOUNDED(reason, TP_MIGRATE_REASONS)];
  by_reason->calls++;
  by_reason->pages_moved += moved;
  by_reason->pages_failed += failed;
  by_reason->timed_pages += call.duration_ns ? moved : 0;
  by_reason->busy_ns += call.duration_ns;
  if (call.duration_ns)
    tp_hist_add(&stats->duration_ns, call.duration_ns);
  else
    stats->untimed++;
  if (moved + failed >= tp_event_pages)
    tp_emit(TP_EVENT_MIGRATION, reason, call.nodes, call.duration_ns, moved, failed);
  return 0;
}

/* mm_migrate_pages(succeeded, failed, thp_succeeded, thp_failed, thp_split, [large_folio_split,]
 * mode, reason): the bracketed argument came in 6.6. The loader loads the one that fits. */
SEC("raw_tp/mm_migrate_pages")
int tp_migr_end8(tp_args* ctx) {
  return tp_migrate_result(ctx[0], ctx[1], ctx[6], ctx[7]);
}

SEC("raw_tp/mm_migrate_pages")
int tp_migr_end7(tp_args* ctx) {
  return tp_migrate_result(ctx[0], ctx[1], ctx[5], ctx[6]);
}
