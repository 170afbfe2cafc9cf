// A heap with four children a node: it is half as deep as a binary one, and a node's children lie
// in one or two cache lines (LaMarca, Ladner: The Influence of Caches on the Performance of Heaps,
// ACM J. of Experimental Algorithmics 1, 1996).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tierpilot::sim {

// `before(a, b)` orders entries, first one on top. `moved(entry, place)` is told of every place
// that an entry gets, so that the owner can name it later.
template <class Entry, class Before, class Moved>
class EventHeap {
 public:
  explicit EventHeap(Moved moved = {}) : moved_(moved) {}
  bool empty() const { return entries_.empty(); }
  const Entry& top() const { return entries_.front(); }
  // In no order but for the first; the next few after it are near the beginning.
  const std::vector<Entry>& entries() const { return entries_; }

  void push(const Entry& entry) {
    entries_.push_back(entry);
    rise(entries_.size() - 1, entry);
  }
  void replace(size_t place, const Entry& entry) {
    Before before;
    before(entry, entries_[place]) ? rise(place, entry) : sink(place, entry);
  }
  void erase(size_t place) {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place < entries_.size()) replace(place, last);
  }

 private:
  static constexpr size_t kChildren = 4;

  void put(size_t place, const Entry& entry) {
    entries_[place] = entry;
    moved_(entry, place);
  }
  void rise(size_t place, Entry entry) {
    for (Before before; place > 0;) {
      const size_t parent = (place - 1) / kChildren;
      if (!before(entry, entries_[parent])) break;
      put(place, entries_[parent]);
      place = parent;
    }
    put(place, entry);
  }
  void sink(size_t place, Entry entry) {
    for (Before before;;) {
      const size_t begin = place * kChildren + 1;
      if (begin >= entries_.size()) break;
      const size_t end = std::min(begin + kChildren, entries_.size());
      size_t first = begin;
      for (size_t child = begin + 1; child < end; ++child)
        if (before(entries_[child], entries_[first])) first = child;
      if (!before(entries_[first], entry)) break;
      put(place, entries_[first]);
      place = first;
    }
    put(place, entry);
  }

  std::vector<Entry> entries_;
  Moved moved_;
};

}  // namespace tierpilot::sim
