// A set of a cluster's nodes, one bit each, and one for each word of these that is not empty: few
// nodes among many are found without a look at the other words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tierpilot::sim {

class NodeSet {
 public:
  explicit NodeSet(size_t nodes = 0) : words_(words_for(nodes)), used_(words_for(words_.size())) {}
  size_t size() const { return size_; }
  bool contains(uint32_t node) const { return words_[node / kBits] >> (node % kBits) & 1; }
  void set(uint32_t node, bool in) {
    if (contains(node) == in) return;
    put(node / kBits, words_[node / kBits] ^ uint64_t{1} << (node % kBits));
    size_ += in ? 1 : -1;
  }
  void clear() {
    words_.assign(words_.size(), 0);
    used_.assign(used_.size(), 0);
    size_ = 0;
  }
  // Adds the nodes that are in both `a` and `b`, lowest number first, until it has `most`.
  void add_common(const NodeSet& a, const NodeSet& b, size_t most) {
    for (size_t i = 0; i < used_.size() && size_ < most; ++i)
      for (uint64_t left = a.used_[i] & b.used_[i]; left != 0 && size_ < most; left &= left - 1)
        add_common(a, b, most, number(i, left));
  }
  // Calls `visit` with each of its nodes, lowest number first.
  template <class Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < used_.size(); ++i)
      for (uint64_t words = used_[i]; words != 0; words &= words - 1) {
        const size_t word = number(i, words);
        for (uint64_t left = words_[word]; left != 0; left &= left - 1)
          visit(static_cast<uint32_t>(number(word, left)));
      }
  }

 private:
  static constexpr size_t kBits = 64;
  static size_t words_for(size_t bits) { return (bits + kBits - 1) / kBits; }
  // Of the lowest bit of a word.
  static size_t number(size_t word, uint64_t bits) {
    return word * kBits + static_cast<size_t>(std::countr_zero(bits));
  }
  void put(size_t word, uint64_t bits) {
    words_[word] = bits;
    const uint64_t its_bit = uint64_t{1} << (word % kBits);
    uint64_t& used = used_[word / kBits];
    used = bits != 0 ? used | its_bit : used & ~its_bit;
  }
  void add_common(const NodeSet& a, const NodeSet& b, size_t most, size_t word) {
    uint64_t added = a.words_[word] & b.words_[word] & ~words_[word];
    if (added == 0) return;
    size_t count = count_of(added);
    for (; count > most - size_; --count) added &= ~std::bit_floor(added);
    put(word, words_[word] | added);
    size_ += count;
  }
  // Adds up pairs of bits, then fours and eights: without the processor's own instruction, which
  // not all of them have, std::popcount is a call.
  static size_t count_of(uint64_t bits) {
    bits -= bits >> 1 & 0x5555555555555555;
    bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return bits * 0x0101010101010101 >> 56;
  }

  std::vector<uint64_t> words_;
  std::vector<uint64_t> used_;  // a bit for each word
  size_t size_ = 0;
};

}  // namespace tierpilot::sim
