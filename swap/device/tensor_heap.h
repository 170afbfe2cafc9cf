// Where large tensors of the processor lie: in huge pages, which go back to the kernel whole.
//
// The C library puts one tensor behind the other, so that what it gives back of one is cut out of
// pages that it shares with its neighbours, and comes anew in pages of 4 KiB.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "swap/extents.h"

namespace tierpilot::swap {

class TensorHeap {
 public:
  static constexpr int64_t kPageBytes = 2 << 20;
  static constexpr size_t kAlignment = 64;

  // For blocks of so many bytes in all, of addresses only; without room where they are not to be
  // had. What is given is filled with `fill`, unless that is 0.
  explicit TensorHeap(int64_t bytes, int fill = 0);
  ~TensorHeap();
  TensorHeap(const TensorHeap&) = delete;
  TensorHeap& operator=(const TensorHeap&) = delete;

  // Where the fewest bytes are needed anew, and of those in the smallest gap; aligned to
  // kAlignment. nullptr: no room.
  void* take(int64_t bytes);
  bool has(const void* data) const;
  // A block that was taken.
  void give(void* data);

  // Pages in which no block lies go back, the last ones first, until that is so many bytes. How
  // many: less were the kernel's where a block was never written.
  int64_t trim(int64_t bytes);
  // All that is free goes back, also beside blocks, where it comes anew in small pages.
  void trim_all();

  // Around a fork, so that the child's copy is whole.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  // The units of a page that were had from the kernel, a bit each.
  using Units = uint32_t;
  static constexpr int64_t kUnitBytes = kPageBytes / 32;
  struct Range {
    int64_t begin = 0, end = 0;  // whole units
  };
  static Range touched(int64_t begin, int64_t bytes);
  static Range inside(int64_t begin, int64_t bytes);
  // Calls work(page, units of it) for each page of the range.
  template <class Work>
  static void each_page(Range range, const Work& work);
  int64_t missing_bytes(int64_t begin, int64_t bytes) const;
  bool grow(int64_t bytes);
  void return_units(int64_t page, Units units);

  const int fill_;
  std::mutex mutex_;
  std::byte* reserved_ = nullptr;
  std::byte* base_ = nullptr;                                // the first whole page
  int64_t reserved_bytes_ = 0, bytes_ = 0, open_bytes_ = 0;  // open: that may be written
  Gaps gaps_;
  std::unordered_map<int64_t, int64_t> blocks_;
  std::vector<Units> had_;  // by page
};

}  // namespace tierpilot::swap
