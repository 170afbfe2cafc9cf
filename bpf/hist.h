/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The arithmetic of struct tp_hist, compiled for both sides so that they cannot disagree. */
#ifndef TIERPILOT_BPF_HIST_H
#define TIERPILOT_BPF_HIST_H

#include "bpf/intf.h"

/* Without __builtin_clzll, which BPF lacks, and without a loop, which old verifiers unroll. */
static inline __attribute__((always_inline)) __u32 tp_log2(__u64 value) {
  __u32 bits = 0;
  if (value >> 32) {
    bits += 32;
    value >>= 32;
  }
  if (value >> 16) {
    bits += 16;
    value >>= 16;
  }
  if (value >> 8) {
    bits += 8;
    value >>= 8;
  }
  if (value >> 4) {
    bits += 4;
    value >>= 4;
  }
  if (value >> 2) {
    bits += 2;
    value >>= 2;
  }
  return bits + (__u32)(value >> 1);
}

static inline __attribute__((always_inline)) __u32 tp_hist_bucket(__u64 value) {
  if (value < (1u << TP_HIST_SUB_BITS)) return (__u32)value;
  if (value >> TP_HIST_MAX_BITS) return TP_HIST_BUCKETS - 1;
  __u32 exponent = tp_log2(value) - TP_HIST_SUB_BITS;
  __u32 mantissa = (__u32)(value >> exponent) & ((1u << TP_HIST_SUB_BITS) - 1);
  return ((exponent + 1) << TP_HIST_SUB_BITS) + mantissa;
}

/* The smallest value of a bucket. */
static inline __attribute__((always_inline)) __u64 tp_hist_floor(__u32 bucket) {
  if (bucket < (1u << TP_HIST_SUB_BITS)) return bucket;
  __u32 exponent = (bucket >> TP_HIST_SUB_BITS) - 1;
  __u64 mantissa = (1u << TP_HIST_SUB_BITS) + (bucket & ((1u << TP_HIST_SUB_BITS) - 1));
  return mantissa << exponent;
}

#endif /* TIERPILOT_BPF_HIST_H */
