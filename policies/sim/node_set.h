// A set of a cluster's nodes, one bit each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tierpilot::sim {

class NodeSet {
 public:
  explicit NodeSet(size_t nodes = 0) : words_((nodes + kBits - 1) / kBits) {}
  size_t size() const { return size_; }
  bool contains(uint32_t node) const { return words_[node / kBits] >> (node % kBits) & 1; }
  void set(uint32_t node, bool in) {
    if (contains(node) == in) return;
    words_[node / kBits] ^= uint64_t{1} << (node % kBits);
    size_ += in ? 1 : -1;
  }
  void clear() {
    words_.assign(words_.size(), 0);
    size_ = 0;
  }
  // Adds the nodes that are in both `a` and `b`, lowest number first, until it has `most`.
  void add_common(const NodeSet& a, const NodeSet& b, size_t most) {
    for (size_t i = 0; i < words_.size() && size_ < most; ++i) {
      uint64_t added = a.words_[i] & b.words_[i] & ~words_[i];
      if (added == 0) continue;
      size_t count = count_of(added);
      for (; count > most - size_; --count) added &= ~std::bit_floor(added);
      words_[i] |= added;
      size_ += count;
    }
  }
  // Calls `visit` with each of its nodes, lowest number first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t left = words_[i]; left != 0; left &= left - 1)
        visit(static_cast<uint32_t>(i * kBits + static_cast<size_t>(std::countr_zero(left))));
  }

 private:
  static constexpr size_t kBits = 64;
  // Adds up pairs of bits, then fours and eights: without the processor's own instruction, which
  // not all of them have, std::popcount is a call.
  static size_t count_of(uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return bits * 0x0101010101010101 >> 56;
  }

  std::vector<uint64_t> words_;
  size_t size_ = 0;
};

}  // namespace tierpilot::sim
