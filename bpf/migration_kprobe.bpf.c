// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Begins a page migration at the entry of migrate_pages(), where fentry cannot: kernels before 6.6
// allow it on six arguments, and this function has seven.
#include <linux/ptrace.h>

#include "bpf/common.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define TP_READ(type, pointer, field) BPF_CORE_READ((const struct type*)(pointer), field)
#define TP_READ_WORD(type, pointer)                                     \
  ({                                                                    \
    __u64 word_ = 0;                                                    \
    bpf_probe_read_kernel(&word_, sizeof(word_), (const void*)pointer); \
    word_;                                                              \
  })

#include "bpf/migration_begin.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* libbpf 1.1 names five registers. */
#if defined(__TARGET_ARCH_x86)
#define TP_PARM6(ctx) ((ctx)->r9)
#elif defined(__TARGET_ARCH_arm64)
#define TP_PARM6(ctx) (((struct user_pt_regs*)(ctx))->regs[5])
#endif

SEC("kprobe/migrate_pages")
int tp_migr_kprobe(struct pt_regs* ctx) {
  return tp_begin((const void*)PT_REGS_PARM1(ctx), PT_REGS_PARM4(ctx), (__u32)TP_PARM6(ctx));
}
