/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The order of counters by pair of nodes and reason, compiled for both sides so that they cannot
 * disagree: a table for node ids below `nodes`, whose first row and column take all others. */
#ifndef TIERPILOT_BPF_PAIRS_H
#define TIERPILOT_BPF_PAIRS_H

#include "bpf/intf.h"

static inline __attribute__((always_inline)) __u32 tp_pair_count(__u32 nodes) {
  return (nodes + 1) * (nodes + 1) * TP_MIGRATE_REASONS;
}

static inline __attribute__((always_inline)) __u32 tp_pair_line(__u32 nodes, __s32 node) {
  return (__u32)node < nodes ? (__u32)node + 1 : 0;
}

static inline __attribute__((always_inline)) __u32 tp_pair_index(__u32 nodes, __s32 from, __s32 to,
                                                                 __u32 reason) {
  __u32 pair = tp_pair_line(nodes, from) * (nodes + 1) + tp_pair_line(nodes, to);
  __u32 last = TP_MIGRATE_REASONS - 1;
  return pair * TP_MIGRATE_REASONS + (reason < last ? reason : last);
}

#endif /* TIERPILOT_BPF_PAIRS_H */
