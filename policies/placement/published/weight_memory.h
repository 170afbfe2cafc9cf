// All weights of a network in one piece of memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace tierpilot {

// Zeros. On huge pages where the system gives them: a decision reads all weights once, in order,
// and would look up a page table entry for every 4 KiB of them.
class WeightMemory {
 public:
  explicit WeightMemory(size_t count) : count_(count) {
    const size_t bytes = (count * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
    void* const memory = std::aligned_alloc(kHugePage, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    ::madvise(memory, bytes, MADV_HUGEPAGE);
    floats_.reset(new (memory) float[count]());
  }

  std::span<float> floats() { return {floats_.get(), count_}; }
  std::span<const float> floats() const { return {floats_.get(), count_}; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;
  struct Freer {
    void operator()(float* memory) const { std::free(memory); }
  };

  size_t count_;
  std::unique_ptr<float[], Freer> floats_;
};

}  // namespace tierpilot
