// What the measured programs share. Internal.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/bench/placement/program.h"
#include "tests/bench/placement/random.h"

namespace tierpilot::bench {

inline constexpr uint64_t kLineBytes = 64;
inline constexpr uint64_t kPageBytes = 4096;

// Arithmetic between two accesses; `rounds` of some two nanoseconds each on an emulated CPU.
inline uint64_t compute(uint64_t x, int rounds) {
  for (int i = 0; i < rounds; ++i) x = (x ^ (x >> 29)) * 0x9e3779b97f4a7c15ULL;
  return x;
}

// The compiler must not drop what computes it.
inline void keep(uint64_t value) {
  asm volatile("" : : "r"(value) : "memory");
}

// A real TLB forgets most of a large array between two accesses to a page. An emulated CPU's holds
// all of it, and the kernel then sees no access: accessed bits are set when the TLB is filled.
// Taking the accessed bits of more than 33 pages away makes the kernel empty it; mprotect() would
// too, but takes the memory map's lock for writing, for which kdamond's checks would hold the
// program up.
class EmulatedTlb {
 public:
  EmulatedTlb()
      : scratch_(static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
    ::madvise(scratch_, kBytes, MADV_NOHUGEPAGE);
  }
  ~EmulatedTlb() { ::munmap(scratch_, kBytes); }
  EmulatedTlb(const EmulatedTlb&) = delete;

  // Of cache lines.
  void count(uint64_t accesses) {
    if ((accesses_ += accesses) < kAccessesToForget) return;
    accesses_ = 0;
    for (size_t at = 0; at < kBytes; at += kPageBytes) scratch_[at] = 1;
    ::madvise(scratch_, kBytes, MADV_COLD);
  }

 private:
  static constexpr size_t kBytes = 40 * kPageBytes;
  static constexpr uint64_t kAccessesToForget = 1 << 13;
  char* const scratch_;
  uint64_t accesses_ = 0;
};

std::unique_ptr<Program> make_hot_set(char* data, uint64_t bytes);
std::unique_ptr<Program> make_streaming(char* data, uint64_t bytes);
std::unique_ptr<Program> make_key_value(char* data, uint64_t bytes);
std::vector<double> hot_set_weights(uint64_t pages, uint32_t hot_quarter);
std::vector<double> key_value_weights(uint64_t bytes);

}  // namespace tierpilot::bench
