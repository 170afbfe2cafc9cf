/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every program shares. Kernel side only. */
#ifndef TIERPILOT_BPF_COMMON_H
#define TIERPILOT_BPF_COMMON_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/hist.h"
#include "bpf/intf.h"

#define TP_INLINE static inline __attribute__((always_inline))

/* Arguments are read as ctx[i], so that one program can be raw_tp, as its section says, and tp_btf,
 * which the loader makes of it where the kernel has BTF. */
typedef __u64 tp_args;

/* An index that the verifier sees to be below `limit`: without the barrier clang compares a copy of
 * it, and the verifier of 6.1 does not know the original. */
#define TP_BOUNDED(index, limit)                   \
  ({                                               \
    __u64 bounded_ = (index);                      \
    barrier_var(bounded_);                         \
    if (bounded_ >= (limit)) bounded_ = (limit)-1; \
    barrier_var(bounded_);                         \
    bounded_;                                      \
  })

TP_INLINE void tp_hist_add_many(struct tp_hist* hist, __u64 value, __u64 times) {
  hist->sum += value * times;
  hist->buckets[TP_BOUNDED(tp_hist_bucket(value), TP_HIST_BUCKETS)] += times;
}

TP_INLINE void tp_hist_add(struct tp_hist* hist, __u64 value) {
  tp_hist_add_many(hist, value, 1);
}

/* The same on a histogram that several CPUs add to. */
TP_INLINE void tp_hist_add_shared(struct tp_hist* hist, __u64 value) {
  __sync_fetch_and_add(&hist->sum, value);
  __sync_fetch_and_add(&hist->buckets[TP_BOUNDED(tp_hist_bucket(value), TP_HIST_BUCKETS)], 1);
}

#endif /* TIERPILOT_BPF_COMMON_H */
