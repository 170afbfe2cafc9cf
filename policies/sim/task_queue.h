// The coordinator's queue: tasks by their number, which is the order of arrival; one that is queued
// again takes its old place.
#pragma once

#include <cstdint>

#include "base/large_pages.h"

namespace tierpilot::sim {

class TaskQueue {
 public:
  static constexpr uint32_t kEnd = UINT32_MAX;

  explicit TaskQueue(size_t tasks) : links_(tasks) {}
  uint32_t first() const { return first_; }
  uint32_t after(uint32_t task) const { return links_[task].next; }
  size_t size() const { return size_; }

  void insert(uint32_t task) {
    // A new one is the last; one that is queued again is older than nearly all.
    uint32_t behind = last_ == kEnd || last_ < task ? kEnd : first_;
    while (behind != kEnd && behind < task) behind = links_[behind].next;
    const uint32_t before = behind == kEnd ? last_ : links_[behind].previous;
    links_[task] = {before, behind};
    (before == kEnd ? first_ : links_[before].next) = task;
    (behind == kEnd ? last_ : links_[behind].previous) = task;
    ++size_;
  }
  void erase(uint32_t task) {
    const auto [before, behind] = links_[task];
    (before == kEnd ? first_ : links_[before].next) = behind;
    (behind == kEnd ? last_ : links_[behind].previous) = before;
    --size_;
  }

 private:
  struct Link {
    uint32_t previous = kEnd, next = kEnd;
  };
  LargeVector<Link> links_;
  uint32_t first_ = kEnd, last_ = kEnd;
  size_t size_ = 0;
};

}  // namespace tierpilot::sim
