// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page migration: one call of the kernel's migrate_pages() from its start to its result. Needs no
// BTF of the kernel.
#include "bpf/events.h"
#include "bpf/migrating.h"
#include "bpf/pairs.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A migration of at least so many pages (moved and failed) is an event. */
const volatile __u64 tp_event_pages = 512;

/* Cleared by the daemon while its programs are being attached or detached: then calls may end whose
 * start went by unseen. */
bool tp_observing = true;

/* Calls that these programs have run in, those of single pages within a draw of each thread. What
 * the daemon reckons their cost by; in memory that it maps, so looking costs nothing. */
__u64 tp_calls = 0;

/* Node ids below it have counters of their own. The loader makes the tables fit. */
const volatile __u32 tp_pair_nodes = 1;

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_migrate_stats);
} tp_migrations SEC(".maps");

/* bpf/pairs.h; all calls are in it, those of unknown nodes in the first row and column. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_migrate_counts);
} tp_migr_pairs SEC(".maps");

/* Tracked owners, and how many of their calls found no room in tp_migr_owned. The daemon makes and
 * removes the entries. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 1024);
  __type(key, __u64);
  __type(value, __u64);
} tp_migr_owners SEC(".maps");

/* Their counters, by owner and the index of bpf/pairs.h. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 16384);
  __type(key, struct tp_owner_key);
  __type(value, struct tp_migrate_counts);
} tp_migr_owned SEC(".maps");

/* mm_migrate_pages_start(mode, reason): where no program may run at the function */
SEC("raw_tp/mm_migrate_pages_start")
int tp_migr_start(tp_args* ctx) {
  struct tp_migrate_call unknown = {.nodes = {TP_NO_NODE, TP_NO_NODE}};
  return tp_migrate_enter(&unknown, false);
}

/* Not on the way of those that nobody tracks. */
TP_INLINE struct tp_migrate_counts* tp_first_of_owner(const struct tp_owner_key* key) {
  __u64* lost = bpf_map_lookup_elem(&tp_migr_owners, &key->owner);
  if (!lost) return 0;
  struct tp_migrate_counts zeros = {};
  bpf_map_update_elem(&tp_migr_owned, key, &zeros, BPF_NOEXIST);
  struct tp_migrate_counts* counts = bpf_map_lookup_elem(&tp_migr_owned, key);
  if (!counts) __sync_fetch_and_add(lost, 1);
  return counts;
}

TP_INLINE void tp_count_for_owner(__u64 owner, __u32 index, const struct tp_migrate_counts* call) {
  struct tp_owner_key key = {.owner = owner, .index = index};
  struct tp_migrate_counts* counts = bpf_map_lookup_elem(&tp_migr_owned, &key);
  if (!counts) counts = tp_first_of_owner(&key);
  if (!counts) return;
  /* Calls for one owner end on any CPU. */
  __sync_fetch_and_add(&counts->calls, 1);
  __sync_fetch_and_add(&counts->pages_moved, call->pages_moved);
  if (call->pages_failed) __sync_fetch_and_add(&counts->pages_failed, call->pages_failed);
  if (!call->busy_ns) return;
  __sync_fetch_and_add(&counts->timed_pages, call->timed_pages);
  __sync_fetch_and_add(&counts->busy_ns, call->busy_ns);
}

TP_INLINE void tp_time_call(const struct tp_migrate_end* end) {
  __u32 zero = 0;
  __sync_fetch_and_add(&tp_calls, end->weight ? end->weight : 1);
  struct tp_migrate_stats* stats = bpf_map_lookup_elem(&tp_migrations, &zero);
  if (!stats) return;
  if (end->duration_ns)
    tp_hist_add_many(&stats->duration_ns, end->duration_ns, end->weight);
  else
    stats->untimed++;
}

TP_INLINE int tp_migrate_result(__u64 moved, __u64 failed, __u32 reason) {
  struct tp_migrate_end end = tp_migrate_leave();
  if (!tp_observing) return 0;
  struct tp_migrate_counts call = {.calls = 1, .pages_moved = moved, .pages_failed = failed};
  __u32 index = tp_pair_index(tp_pair_nodes, end.call.nodes.from, end.call.nodes.to, reason);
  struct tp_migrate_counts* pair = bpf_map_lookup_elem(&tp_migr_pairs, &index);
  if (!pair) return 0;
  pair->calls++;
  pair->pages_moved += moved;
  if (failed) pair->pages_failed += failed;
  if (end.duration_ns) {
    call.timed_pages = moved * end.weight;
    call.busy_ns = end.duration_ns * end.weight;
    pair->timed_pages += call.timed_pages;
    pair->busy_ns += call.busy_ns;
  }
  if (end.duration_ns || !end.weight) tp_time_call(&end);
  if (end.call.owner) tp_count_for_owner(end.call.owner, index, &call);
  if (moved + failed >= tp_event_pages)
    tp_emit(TP_EVENT_MIGRATION, reason, end.call.nodes, end.duration_ns, moved, failed);
  return 0;
}

/* mm_migrate_pages(succeeded, failed, thp_succeeded, thp_failed, thp_split, [large_folio_split,]
 * mode, reason): the bracketed argument came in 6.6. The loader loads the one that fits. */
SEC("raw_tp/mm_migrate_pages")
int tp_migr_end8(tp_args* ctx) {
  return tp_migrate_result(ctx[0], ctx[1], ctx[7]);
}

SEC("raw_tp/mm_migrate_pages")
int tp_migr_end7(tp_args* ctx) {
  return tp_migrate_result(ctx[0], ctx[1], ctx[6]);
}
