// FNV-1a of 64 bits (Fowler, Noll, Vo): the same in every run.
#pragma once

#include <cstdint>
#include <string_view>

namespace tierpilot::swap::libtorch {

class Hash {
 public:
  Hash& add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) add_byte(value >> (8 * byte) & 0xff);
    return *this;
  }
  Hash& add(std::string_view text) {
    for (const unsigned char letter : text) add_byte(letter);
    return *this;
  }
  uint64_t value() const { return value_; }

 private:
  void add_byte(uint64_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace tierpilot::swap::libtorch
