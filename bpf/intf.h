/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every type that crosses the kernel boundary, in plain C for both sides. All fields are 64 bits
 * wide or come in pairs, so there is no padding that could leak or differ; sizes are asserted.
 * Counters are cumulative since the programs were loaded; times are nanoseconds.
 */
#ifndef TIERPILOT_BPF_INTF_H
#define TIERPILOT_BPF_INTF_H

#include <linux/types.h>

#ifdef __cplusplus
#define TP_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), #type " changed size")
#else
#define TP_ASSERT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " changed size")
#endif

/* Log-linear: 8 buckets per power of two, the last one also takes all from 2^40 ns (18 min) up. */
#define TP_HIST_SUB_BITS 3
#define TP_HIST_MAX_BITS 40
#define TP_HIST_BUCKETS ((TP_HIST_MAX_BITS - TP_HIST_SUB_BITS + 1) << TP_HIST_SUB_BITS)

struct tp_hist {
  __u64 sum;
  __u64 buckets[TP_HIST_BUCKETS];
};
TP_ASSERT_SIZE(struct tp_hist, 8 * 305);

/* Node ids from here on share the last slot of counters by node. */
#define TP_NODES 64     /* a power of two */
#define TP_NO_NODE (-1) /* not known, or not one */

/* ---- page migration ---- */

/* Kernel 6.18 knows ten reasons; the last slot takes what is beyond the table. */
#define TP_MIGRATE_REASONS 16

/* Of one pair of nodes and one reason: see bpf/pairs.h. */
struct tp_migrate_counts {
  __u64 calls;
  __u64 pages_moved;
  __u64 pages_failed;
  __u64 timed_pages; /* moved by timed calls, and by those that a timed one stands for */
  __u64 busy_ns;     /* inside these */
};
TP_ASSERT_SIZE(struct tp_migrate_counts, 40);

struct tp_migrate_stats {
  /* Calls whose end met no start of their own: nested in another one, whose duration has theirs;
   * begun before the load; or begun when no slot was free (tp_lost_calls counts these). Not those
   * of single pages that were not drawn. */
  __u64 untimed;
  struct tp_hist duration_ns;
};
TP_ASSERT_SIZE(struct tp_migrate_stats, 8 * (1 + 305));

/* From where to where, as far as the call tells: the node of its pages and the one asked for. */
struct tp_migrate_nodes {
  __s32 from; /* TP_NO_NODE: several */
  __s32 to;   /* TP_NO_NODE: by a policy */
};

/*
 * Whose counters a call adds to, beside the machine's: a cgroup, by its id, or a process group with
 * TP_OWNER_GROUP set, so that it is no cgroup's id.
 */
#define TP_OWNER_GROUP (1ull << 63)

enum tp_owners_by {
  TP_OWNERS_NONE,
  TP_OWNERS_MEMORY, /* the cgroup that a call's first page is charged to */
  TP_OWNERS_CALLER, /* the process group that calls */
};

/* An element of an owner's counters. */
struct tp_owner_key {
  __u64 owner;
  __u32 index;
  __u32 zero;
};
TP_ASSERT_SIZE(struct tp_owner_key, 16);

struct tp_migrate_call {
  struct tp_migrate_nodes nodes;
  __u64 owner; /* 0: nobody asked */
};

/* Calls of one thread in progress: a nested one has nodes of its own, but no start. */
#define TP_MIGRATE_DEPTH 2

struct tp_migrate_slot {
  __u64 depth;    /* from 1 on */
  __u64 start_ns; /* of the outermost; 0: not timed */
  __u64 weight;   /* calls that its duration stands for */
  __u32 left;     /* small calls until the next draw, this one included */
  __u32 drawn;    /* how many are left when one is timed */
  struct tp_migrate_call calls[TP_MIGRATE_DEPTH];
};
TP_ASSERT_SIZE(struct tp_migrate_slot, 64);

/* Slots of the threads whose ids have the same remainder. */
#define TP_MIGRATING_SETS 256 /* a power of two */
#define TP_MIGRATING_WAYS 4

struct tp_migrate_set {
  __u32 tids[TP_MIGRATING_WAYS]; /* whose slot it is; 0: free */
  struct tp_migrate_slot slots[TP_MIGRATING_WAYS];
};
TP_ASSERT_SIZE(struct tp_migrate_set, 272);

/* ---- reclaim ---- */

enum tp_reclaim_kind {
  TP_RECLAIM_DIRECT, /* an allocation waits for free pages of the machine */
  TP_RECLAIM_MEMCG,  /* an allocation waits because its memory cgroup is at its limit */
  TP_RECLAIM_KINDS,
};

struct tp_reclaim_kind_stats {
  __u64 calls;
  __u64 pages;
  struct tp_hist duration_ns;
};

struct tp_reclaim_stats {
  struct tp_reclaim_kind_stats kinds[TP_RECLAIM_KINDS];
  __u64 kswapd_wakes;
  __u64 untimed;
};
TP_ASSERT_SIZE(struct tp_reclaim_stats, 8 * (2 * 307 + 2));

/* ---- faults ---- */

/* The kernel counts them in each task anyway: nothing runs per fault. */
struct tp_fault_stats {
  __u64 faults;
  __u64 major;
};
TP_ASSERT_SIZE(struct tp_fault_stats, 16);

/* What the walk over all tasks writes for each living task of a tracked group. */
struct tp_fault_record {
  __s32 pgid;
  __u32 zero;
  struct tp_fault_stats stats;
};
TP_ASSERT_SIZE(struct tp_fault_record, 24);

/* ---- NUMA-hint faults ---- */

struct tp_numa_hint_stats {
  __u64 faults;
  __u64 pages;
  __u64 migrated_pages;
  __u64 pages_by_node[TP_NODES]; /* where the pages were left */
};
TP_ASSERT_SIZE(struct tp_numa_hint_stats, 8 * (3 + TP_NODES));

/* ---- fault service times ---- */

struct tp_fault_frame {
  __u64 start_ns;
  __s32 node; /* of the page allocated for the fault, TP_NO_NODE so far */
  __u32 zero;
};
TP_ASSERT_SIZE(struct tp_fault_frame, 16);

/* ---- fault addresses ---- */

/* A page that a watched process faulted on; the value beside it counts how often. */
struct tp_fault_page {
  __u64 page; /* address >> 12 */
  __u32 tgid; /* in the daemon's pid namespace */
  __u32 zero;
};
TP_ASSERT_SIZE(struct tp_fault_page, 16);

/* ---- compaction ---- */

enum tp_compact_kind {
  TP_COMPACT_DIRECT,     /* a task waits for it */
  TP_COMPACT_BACKGROUND, /* a kernel thread does it: kcompactd */
  TP_COMPACT_KINDS,
};

struct tp_compact_kind_stats {
  __u64 calls; /* zones gone through */
  struct tp_hist duration_ns;
};

struct tp_compact_stats {
  struct tp_compact_kind_stats kinds[TP_COMPACT_KINDS];
  __u64 untimed;
};
TP_ASSERT_SIZE(struct tp_compact_stats, 8 * (2 * 306 + 1));

/* ---- block I/O ---- */

enum tp_io_op {
  TP_IO_READ,
  TP_IO_WRITE,
  TP_IO_OTHER, /* flush, discard, zone and pass-through commands */
  TP_IO_OPS,
};

struct tp_io_op_stats {
  __u64 requests;
  __u64 bytes;
  __u64 errors;
};

struct tp_io_stats {
  struct tp_io_op_stats ops[TP_IO_OPS];
  __u64 untimed; /* completions whose issue was not seen */
  struct tp_hist latency_ns;
};
TP_ASSERT_SIZE(struct tp_io_stats, 8 * (3 * TP_IO_OPS + 1 + 305));

/* ---- ring buffer: only what is rare or large ---- */

enum tp_event_kind {
  TP_EVENT_MIGRATION,
  TP_EVENT_RECLAIM,
};

struct tp_event {
  __u64 end_boot_ns; /* CLOCK_BOOTTIME */
  __u64 duration_ns; /* 0: not timed */
  __u64 pages;
  __u64 pages_failed;
  __u32 kind;   /* enum tp_event_kind */
  __u32 detail; /* migration: the kernel's enum migrate_reason; reclaim: enum tp_reclaim_kind */
  __u32 tid;    /* in the kernel's first pid namespace */
  __u32 tgid;
  struct tp_migrate_nodes nodes; /* both TP_NO_NODE for a reclaim */
  char comm[16];
};
TP_ASSERT_SIZE(struct tp_event, 72);

#endif /* TIERPILOT_BPF_INTF_H */
