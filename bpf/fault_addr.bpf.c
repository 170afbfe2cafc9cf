// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Where watched processes fault: on each page, how often. With NUMA balancing on, these are mostly
// its hint faults, and so a sample of all accesses.
#include <linux/bpf_perf_event.h>

#include "bpf/common.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The pid namespace in whose numbers processes are named: device and inode of /proc/self/ns/pid. */
const volatile __u64 tp_pidns_dev = 0;
const volatile __u64 tp_pidns_ino = 0;

#define TP_PAGE_BITS 12

/* Drained by the daemon; what finds no room is counted in tp_fault_pids. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 16384);
  __type(key, struct tp_fault_page);
  __type(value, __u64);
} tp_fault_pages SEC(".maps");

/* Watched processes, and how many of their faults were lost. */
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 256);
  __type(key, __u32);
  __type(value, __u64);
} tp_fault_pids SEC(".maps");

TP_INLINE int tp_note_fault(__u64 address) {
  struct bpf_pidns_info self = {};
  if (bpf_get_ns_current_pid_tgid(tp_pidns_dev, tp_pidns_ino, &self, sizeof(self))) return 0;
  __u32 tgid = self.tgid;
  __u64* lost = bpf_map_lookup_elem(&tp_fault_pids, &tgid);
  if (!lost) return 0;
  struct tp_fault_page key = {.page = address >> TP_PAGE_BITS, .tgid = tgid};
  __u64* count = bpf_map_lookup_elem(&tp_fault_pages, &key);
  __u64 one = 1;
  if (count)
    __sync_fetch_and_add(count, 1);
  else if (bpf_map_update_elem(&tp_fault_pages, &key, &one, BPF_ANY))
    __sync_fetch_and_add(lost, 1);
  return 0;
}

/* page_fault_user(address, regs, error_code): x86 only until 6.16 */
SEC("raw_tp/page_fault_user")
int tp_fault_at(tp_args* ctx) {
  return tp_note_fault(ctx[0]);
}

/* In its place where there is no such tracepoint. */
SEC("perf_event")
int tp_fault_event(struct bpf_perf_event_data* ctx) {
  return tp_note_fault(ctx->addr);
}
