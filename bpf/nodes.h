/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The NUMA node of a page. Kernel side only; needs the kernel's BTF. */
#ifndef TIERPILOT_BPF_NODES_H
#define TIERPILOT_BPF_NODES_H

#include "bpf/common.h"

/* Bits of a page's flags below its node's number; 64 on a kernel for one node. The loader tells it.
 */
const volatile __u32 tp_node_shift = 64;

/*
 * A page's flags, its first word in every kernel, begin with its node: include/linux/
 * page-flags-layout.h, where memory is mapped virtually (SPARSEMEM_VMEMMAP, all NUMA machines
 * today).
 */
TP_INLINE __s32 tp_node_of_flags(__u64 flags) {
  return tp_node_shift < 64 ? (__s32)(flags >> tp_node_shift) : 0;
}

TP_INLINE __s32 tp_node_of_page(const void* page) {
  __u64 flags = 0;
  if (!page || bpf_probe_read_kernel(&flags, sizeof(flags), page)) return TP_NO_NODE;
  return tp_node_of_flags(flags);
}

#endif /* TIERPILOT_BPF_NODES_H */
