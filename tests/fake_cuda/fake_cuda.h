/* What tests tell the stand-in for the CUDA driver, and ask it. The device's memory is the
 * process's own; each stream does what it was told in order, in a thread of its own, later. */
#ifndef TIERPILOT_FAKE_CUDA_H
#define TIERPILOT_FAKE_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work for a stream (0: the default one), after what it was told before. */
void fake_cuda_launch(uint64_t stream, void (*work)(void*), void* argument);
/* The next `count` copies are refused, as by a device that has failed. */
void fake_cuda_fail_copies(int count);
/* Calls so far of copies from and to pinned host memory, and of others; bytes that are pinned. */
typedef struct fake_cuda_counts {
  int64_t pinned_copies, other_copies, across_pins, pinned_bytes, contexts, streams, events;
} fake_cuda_counts;
fake_cuda_counts fake_cuda_count(void);

#ifdef __cplusplus
}
#endif
#endif
