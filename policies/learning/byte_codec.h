// Plain little-endian values in a row of bytes. Reading never goes beyond the end and never
// allocates for more than there is: after the first value that does not fit, ok() is false and
// everything reads as zero.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tierpilot {

static_assert(std::endian::native == std::endian::little);

template <class T>
concept PlainNumber = std::is_arithmetic_v<T>;

class ByteWriter {
 public:
  template <PlainNumber T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <PlainNumber T>
  void put_all(std::span<const T> values) {
    put<uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void put_text(std::string_view text) { put_all<char>(std::span(text.data(), text.size())); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <PlainNumber T>
  T get() {
    T value{};
    if (claim(sizeof(T))) std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  // A count of items that take at least `item_bytes` each; 0 if so many cannot follow.
  size_t get_count(size_t item_bytes) {
    const auto count = get<uint64_t>();
    if (count > rest_.size() / item_bytes) ok_ = false;
    return ok_ ? count : 0;
  }
  template <PlainNumber T>
  std::vector<T> get_all() {
    std::vector<T> values(get_count(sizeof(T)));
    if (!values.empty())
      std::memcpy(values.data(), take(values.size() * sizeof(T)), values.size() * sizeof(T));
    return values;
  }

  std::string get_text() {
    const size_t size = get_count(1);
    return {take(size), size};
  }

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  bool claim(size_t size) {
    if (rest_.size() < size) ok_ = false;
    return ok_;
  }
  const char* take(size_t size) {
    const char* begin = rest_.data();
    rest_.remove_prefix(size);
    return begin;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace tierpilot
