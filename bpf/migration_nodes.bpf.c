// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Begins a page migration in the place of the tracepoint, which does not tell the nodes, by looking
// at the arguments of migrate_pages(from, get_new, put_new, private, mode, reason, ...).
#include <linux/ptrace.h>

#include "bpf/migrating.h"
#include "bpf/nodes.h"

#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
  struct list_head* next;
  struct list_head* prev;
};

struct folio {
  struct list_head lru;
};

/* mm/internal.h: what alloc_migration_target() and demotion's allocators get as `private`. */
struct migration_target_control {
  int nid;
};

#pragma clang attribute pop

enum migrate_reason { MR_COMPACTION, MR_MEMPOLICY_MBIND, MR_NUMA_MISPLACED };
#define TP_REASON(name) bpf_core_enum_value(enum migrate_reason, name)

TP_INLINE __s32 tp_node_of_entry(const struct list_head* entry) {
  return tp_node_of_page((const void*)entry - bpf_core_field_offset(struct folio, lru));
}

/* The kernel gathers a list by target, and mostly of one source: its ends stand for all. */
TP_INLINE __s32 tp_source_node(const struct list_head* from) {
  const struct list_head *first = BPF_CORE_READ(from, next), *last = BPF_CORE_READ(from, prev);
  if (!first || first == from) return TP_NO_NODE;
  __s32 node = tp_node_of_entry(first);
  return first == last || tp_node_of_entry(last) == node ? node : TP_NO_NODE;
}

/* Told by the reason, since each has one kind of allocator: alloc_misplaced_dst_*() gets the node
 * itself, compaction stays in its zone, mbind() gives a policy. */
TP_INLINE __s32 tp_target_node(__u64 private, __u32 reason, __s32 source) {
  if (reason == TP_REASON(MR_NUMA_MISPLACED)) return (__s32) private;
  if (reason == TP_REASON(MR_COMPACTION)) return source;
  if (reason == TP_REASON(MR_MEMPOLICY_MBIND)) return TP_NO_NODE;
  int node = TP_NO_NODE;
  const struct migration_target_control* control = (const void*)private;
  if (bpf_core_read(&node, sizeof(node), &control->nid)) return TP_NO_NODE;
  return node == TP_NO_NODE ? source : node; /* NUMA_NO_NODE: near the page */
}

TP_INLINE int tp_begin(const struct list_head* from, __u64 private, __u32 reason) {
  struct tp_migrate_nodes nodes = {.from = tp_source_node(from)};
  nodes.to = tp_target_node(private, reason, nodes.from);
  return tp_migrate_enter(nodes);
}

SEC("fentry/migrate_pages")
int tp_migr_fentry(tp_args* ctx) {
  return tp_begin((const void*)ctx[0], ctx[3], (__u32)ctx[5]);
}

/* libbpf 1.1 names five registers. */
#if defined(__TARGET_ARCH_x86)
#define TP_PARM6(ctx) ((ctx)->r9)
#elif defined(__TARGET_ARCH_arm64)
#define TP_PARM6(ctx) (((struct user_pt_regs*)(ctx))->regs[5])
#endif

/* Kernels before 6.6 allow fentry on six arguments, and this function has seven. */
SEC("kprobe/migrate_pages")
int tp_migr_kprobe(struct pt_regs* ctx) {
  return tp_begin((const void*)PT_REGS_PARM1(ctx), PT_REGS_PARM4(ctx), (__u32)TP_PARM6(ctx));
}
