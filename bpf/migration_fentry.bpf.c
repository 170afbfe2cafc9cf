// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Begins a page migration at the entry of migrate_pages(), where fentry takes its seven arguments:
// x86 from 6.6 on. Kernel memory is read by plain loads.
#include "bpf/common.h"

#include <bpf/bpf_core_read.h>

extern void* bpf_rdonly_cast(const void* pointer, __u32 btf_id) __ksym;

#define TP_CAST(type, pointer) \
  ((const struct type*)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(struct type)))
#define TP_READ(type, pointer, field) (TP_CAST(type, pointer)->field)
#define TP_READ_WORD(type, pointer) (*(const __u64*)TP_CAST(type, pointer))

#include "bpf/migration_begin.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("fentry/migrate_pages")
int tp_migr_fentry(tp_args* ctx) {
  return tp_begin((const void*)ctx[0], ctx[3], (__u32)ctx[5]);
}
