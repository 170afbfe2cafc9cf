// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Page migration: one call of the kernel's migrate_pages() from its start to its result. The
// tracepoints do not tell source and target nodes.
#include "bpf/events.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A migration of at least so many pages (moved and failed) is an event. */
const volatile __u64 tp_event_pages = 512;

/* The kernel skips a program that already runs on the CPU, so an end may be missed. */
#define TP_LOST_NS (10ull * 1000 * 1000 * 1000)

struct tp_migrate_frame {
  __u64 start_ns;
  __u64 depth;
};

/* By thread id. Bounded by the threads that migrate at the same moment. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1024);
  __type(key, __u32);
  __type(value, struct tp_migrate_frame);
} tp_migrating SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct tp_migrate_stats);
} tp_migrations SEC(".maps");

/* mm_migrate_pages_start(mode, reason) */
SEC("raw_tp/mm_migrate_pages_start")
int tp_migr_start(tp_args* ctx) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_migrate_frame* outer = bpf_map_lookup_elem(&tp_migrating, &tid);
  __u64 now_ns = bpf_ktime_get_ns();
  /* A target page may be reclaimed for, and reclaim may demote: calls nest in one thread. */
  if (outer && now_ns - outer->start_ns < TP_LOST_NS) {
    outer->depth++;
    return 0;
  }
  struct tp_migrate_frame frame = {.start_ns = now_ns, .depth = 1};
  bpf_map_update_elem(&tp_migrating, &tid, &frame, BPF_ANY);
  return 0;
}

/* The duration of the outermost call, 0 inside a nested one or when its start was not seen. */
TP_INLINE __u64 tp_migrate_leave(void) {
  __u32 tid = (__u32)bpf_get_current_pid_tgid();
  struct tp_migrate_frame* frame = bpf_map_lookup_elem(&tp_migrating, &tid);
  if (!frame) return 0;
  if (--frame->depth > 0) return 0;
  __u64 duration_ns = bpf_ktime_get_ns() - frame->start_ns;
  bpf_map_delete_elem(&tp_migrating, &tid);
  return duration_ns;
}

TP_INLINE int tp_migrate_result(__u64 moved, __u64 failed, __u32 mode, __u32 reason) {
  __u64 duration_ns = tp_migrate_leave();
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
  by_reason->busy_ns += duration_ns;
  if (duration_ns)
    tp_hist_add(&stats->duration_ns, duration_ns);
  else
    stats->untimed++;
  if (moved + failed >= tp_event_pages)
    tp_emit(TP_EVENT_MIGRATION, reason, duration_ns, moved, failed);
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
