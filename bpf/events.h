/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ring of rare or large events. Kernel side only. */
#ifndef TIERPILOT_BPF_EVENTS_H
#define TIERPILOT_BPF_EVENTS_H

#include "bpf/common.h"

/* One ring for all subjects: the loader passes the first one's to the others. */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 64 * 1024);
} tp_events SEC(".maps");

TP_INLINE void tp_emit(__u32 kind, __u32 detail, struct tp_migrate_nodes nodes, __u64 duration_ns,
                       __u64 pages, __u64 pages_failed) {
  struct tp_event* event = bpf_ringbuf_reserve(&tp_events, sizeof(*event), 0);
  if (!event) return;
  __u64 id = bpf_get_current_pid_tgid();
  event->end_boot_ns = bpf_ktime_get_boot_ns();
  event->duration_ns = duration_ns;
  event->pages = pages;
  event->pages_failed = pages_failed;
  event->kind = kind;
  event->detail = detail;
  event->nodes = nodes;
  event->tid = (__u32)id;
  event->tgid = id >> 32;
  bpf_get_current_comm(event->comm, sizeof(event->comm));
  bpf_ringbuf_submit(event, 0);
}

#endif /* TIERPILOT_BPF_EVENTS_H */
