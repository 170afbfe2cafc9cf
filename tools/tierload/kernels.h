// The work that tierload's tasks do over their datasets: small, honest kernels of the kinds that
// data-intensive programs are made of. Each reads a dataset as whole little-endian 32-bit words
// (float kernels take a word as a number in [0, 1)), and gives a checksum that anyone can verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace tierpilot::tierload {

struct KernelParameters {
  uint32_t passes = 1;  // how often the whole work is done
  uint64_t size = 0;    // the kernel's own measure (Kernel::size_meaning); 0: its default
  uint64_t seed = 1;
};

struct Operations {
  double floats = 0;  // single-precision float operations
  double ints = 0;    // int32 operations
};

// Bytes of one dataset. Aligned to at least 4.
struct Region {
  std::byte* data;
  size_t bytes;
  bool writable;
};

struct KernelResult {
  uint64_t checksum = 0;  // float kernels: the bits of a double
  Operations operations;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
};

struct Kernel {
  enum class Access { kRead, kWrite, kReadThenWrite };  // the last: reads all but the last dataset

  std::string_view name;
  std::string_view summary;
  std::string_view size_meaning;  // empty: takes no size
  uint64_t default_size, min_size, max_size;
  Access access;
  bool float_checksum;
  KernelResult (*run)(std::span<const Region> regions, const KernelParameters& parameters);
  Operations (*estimate)(uint64_t bytes, const KernelParameters& parameters);
};

inline constexpr uint32_t kMaxPasses = 10'000;

std::span<const Kernel> kernels();
// kNotFound names the kernels there are.
Result<const Kernel*> find_kernel(std::string_view name);

// Checks everything first: kInvalid for parameters out of range, datasets too small or not
// writable.
Result<KernelResult> run_kernel(const Kernel& kernel, std::span<const Region> regions,
                                KernelParameters parameters);

// The operations that run_kernel will count for one dataset of `bytes` (for kReadThenWrite: for a
// written dataset of `bytes`), before it runs.
Operations estimate_operations(const Kernel& kernel, uint64_t bytes, KernelParameters parameters);

}  // namespace tierpilot::tierload
