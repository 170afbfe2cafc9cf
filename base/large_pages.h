// Memory for containers that are large and looked at all over: huge pages where the system has
// them, as otherwise every look would first have to wait for the page tables.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace tierpilot {

template <class T>
struct LargePages {
  using value_type = T;
  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kLeast) return std::allocator<T>().allocate(count);
    const size_t whole = (bytes + kPage - 1) / kPage * kPage;
    void* const memory = std::aligned_alloc(kPage, whole);
    if (!memory) throw std::bad_alloc();
    madvise(memory, whole, MADV_HUGEPAGE);  // a wish: small pages do as well
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < kLeast) return std::allocator<T>().deallocate(memory, count);
    std::free(memory);
  }
  bool operator==(const LargePages&) const = default;

 private:
  static constexpr size_t kPage = 2 << 20;
  static constexpr size_t kLeast = kPage / 4;  // less would waste most of a page
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace tierpilot
