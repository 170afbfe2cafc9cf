// PyTorch's tensors of the processor, in a heap of this library's.
#pragma once

#include <cstdint>

namespace tierpilot::swap {

// From now on tensors of 256 KiB and more that PyTorch makes lie there, whatever its version. Not
// so where its library for that (libc10.so) is not loaded or calls other functions than it used to,
// where addresses are limited (RLIMIT_AS), or where TIERPILOT_SWAP_HEAP is 0: then they lie in the
// C library's heap as before. What ends is filled as MALLOC_PERTURB_ has it.
void keep_tensors_in_huge_pages();
// What is free there goes back to the kernel: whole pages, until that is so many bytes (how many,
// as TensorHeap::trim has it); or all.
int64_t trim_tensors(int64_t bytes);
void trim_all_tensors();

}  // namespace tierpilot::swap
