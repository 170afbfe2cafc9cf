/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The NUMA node of a page. Kernel side only; needs the kernel's BTF. */
#ifndef TIERPILOT_BPF_NODES_H
#define TIERPILOT_BPF_NODES_H

#include "bpf/common.h"

#include <bpf/bpf_core_read.h>

enum zone_type { __MAX_NR_ZONES = 1 };
struct zoneref {
  int zone_idx;
};
struct zonelist {
  struct zoneref _zonerefs[1];
};

/*
 * A page's flags, its first word in every kernel, begin with its node: include/linux/
 * page-flags-layout.h, where memory is mapped virtually (SPARSEMEM_VMEMMAP, all NUMA machines
 * today). How many bits that is (NODES_SHIFT) needs no file of the kernel's configuration, which
 * may be missing: a zonelist has MAX_NUMNODES * MAX_NR_ZONES entries and one more.
 */
TP_INLINE __s32 tp_node_of_page(const void* page) {
  __u64 flags = 0;
  if (!page || bpf_probe_read_kernel(&flags, sizeof(flags), page)) return TP_NO_NODE;
  __u64 entries = bpf_core_type_size(struct zonelist) / bpf_core_type_size(struct zoneref);
  __u32 node_bits = tp_log2((entries - 1) / bpf_core_enum_value(enum zone_type, __MAX_NR_ZONES));
  return node_bits ? (__s32)(flags >> (64 - node_bits)) : 0;
}

#endif /* TIERPILOT_BPF_NODES_H */
