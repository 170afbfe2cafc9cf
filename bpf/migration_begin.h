/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Begins a page migration in the place of the tracepoint, which tells neither nodes nor owners, by
 * looking at the arguments of migrate_pages(from, get_new, put_new, private, mode, reason, ...).
 *
 * Kernel side only. Before it, define how kernel memory is read:
 *   TP_READ(type, pointer, field)   field of the struct `type` at `pointer`
 *   TP_READ_WORD(type, pointer)     its first eight bytes
 */
#ifndef TIERPILOT_BPF_MIGRATION_BEGIN_H
#define TIERPILOT_BPF_MIGRATION_BEGIN_H

#include "bpf/kernel.h"
#include "bpf/migrating.h"
#include "bpf/nodes.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
  struct list_head* next;
  struct list_head* prev;
};

struct folio {
  struct list_head lru;
  unsigned long memcg_data;
};

struct mem_cgroup {
  struct cgroup_subsys_state css;
};

/* mm/internal.h: what alloc_migration_target() and demotion's allocators get as `private`. */
struct migration_target_control {
  int nid;
};

#pragma clang attribute pop

enum pageflags { PG_head };
enum migrate_reason { MR_COMPACTION, MR_MEMPOLICY_MBIND, MR_NUMA_MISPLACED };
#define TP_REASON(name) bpf_core_enum_value(enum migrate_reason, name)

/* enum page_memcg_data_flags: pages that are not charged to a mem_cgroup itself. */
#define MEMCG_DATA_FLAGS 3ul

/* enum tp_owners_by: whose calls are told apart. The daemon changes it. */
__u32 tp_owners_by = TP_OWNERS_NONE;

TP_INLINE const void* tp_folio_of(const struct list_head* entry) {
  return (const void*)entry - bpf_core_field_offset(struct folio, lru);
}

TP_INLINE __u64 tp_cgroup_of(const void* folio) {
  if (!bpf_core_field_exists(struct folio, memcg_data)) return 0;
  __u64 memcg = TP_READ(folio, folio, memcg_data);
  if (!memcg || memcg & MEMCG_DATA_FLAGS) return 0;
  const void* cgroup = TP_READ(mem_cgroup, (const void*)memcg, css.cgroup);
  const void* node = TP_READ(cgroup, cgroup, kn);
  return TP_READ(kernfs_node, node, id);
}

TP_INLINE __u64 tp_owner_of(const void* folio) {
  if (tp_owners_by == TP_OWNERS_MEMORY) return tp_cgroup_of(folio);
  if (tp_owners_by == TP_OWNERS_CALLER) return TP_OWNER_GROUP | (__u32)tp_current_pgid();
  return 0;
}

/* Told by the reason, since each has one kind of allocator: alloc_misplaced_dst_*() gets the node
 * itself, compaction stays in its zone, mbind() gives a policy. */
TP_INLINE __s32 tp_target_node(__u64 private, __u32 reason, __s32 source) {
  if (reason == TP_REASON(MR_NUMA_MISPLACED)) return (__s32) private;
  if (reason == TP_REASON(MR_COMPACTION)) return source;
  if (reason == TP_REASON(MR_MEMPOLICY_MBIND) || !private) return TP_NO_NODE;
  __s32 node = TP_READ(migration_target_control, (const void*)private, nid);
  return node == TP_NO_NODE ? source : node; /* NUMA_NO_NODE: near the page */
}

/* The kernel gathers a list by target, and mostly of one source and one owner: its ends stand for
 * all, and its first page for the owner. */
TP_INLINE int tp_begin(const struct list_head* from, __u64 private, __u32 reason) {
  const struct list_head* first = TP_READ(list_head, from, next);
  const struct list_head* last = TP_READ(list_head, from, prev);
  if (!first || first == from) {
    struct tp_migrate_call empty = {.nodes = {TP_NO_NODE, TP_NO_NODE}};
    return tp_migrate_enter(&empty, true);
  }
  const void* folio = tp_folio_of(first);
  __u64 flags = TP_READ_WORD(folio, folio);
  struct tp_migrate_call call = {.nodes = {.from = tp_node_of_flags(flags)},
                                 .owner = tp_owner_of(folio)};
  bool single = first == last;
  if (!single && tp_node_of_flags(TP_READ_WORD(folio, tp_folio_of(last))) != call.nodes.from)
    call.nodes.from = TP_NO_NODE;
  call.nodes.to = tp_target_node(private, reason, call.nodes.from);
  bool huge = flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1;
  return tp_migrate_enter(&call, single && !huge);
}

#endif /* TIERPILOT_BPF_MIGRATION_BEGIN_H */
