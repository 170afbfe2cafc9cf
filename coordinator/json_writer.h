// Writes JSON straight into a string. Building nlohmann's tree first took a third of the store
// thread's time; it still reads what is written here, and decides how numbers and odd strings look.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tierpilot {

// Any bytes, kept as they are: text as a string, others as {"hex": "..."}. JSON has only text.
struct ExactBytes {
  std::string_view bytes;
};

class JsonWriter {
 public:
  JsonWriter() { text_.reserve(512); }

  // A member of the object that is open. Values are numbers, booleans, strings, optionals (null
  // when empty), pairs and vectors (arrays), and whatever has a write_json(JsonWriter&, const T&).
  template <class T>
  JsonWriter& put(std::string_view key, const T& value) {
    separate();
    (text_ += '"').append(key) += "\":";
    write(value);
    return *this;
  }
  // An object whose members `fill` puts.
  template <class Fill>
  void object(Fill fill) {
    text_ += '{';
    fill();
    text_ += '}';
  }
  template <class Items, class Get>
  void array(const Items& items, Get get) {
    text_ += '[';
    for (const auto& item : items) {
      separate();
      write(get(item));
    }
    text_ += ']';
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::same_as<T, bool>)
      text_ += value ? "true" : "false";
    else if constexpr (std::floating_point<T>)
      number(value);
    else if constexpr (std::integral<T>)
      text_ += std::to_string(value);
    else if constexpr (std::convertible_to<T, std::string_view>)
      string(value);
    else
      write_json(*this, value);
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value)
      write(*value);
    else
      text_ += "null";
  }
  template <class T>
  void write(const std::vector<T>& items) {
    array(items, [](const T& item) -> const T& { return item; });
  }
  template <class First, class Second>
  void write(const std::pair<First, Second>& both) {
    text_ += '[';
    write(both.first);
    text_ += ',';
    write(both.second);
    text_ += ']';
  }

  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (text_.back() != '{' && text_.back() != '[') text_ += ',';
  }
  void number(double value);
  void string(std::string_view value);

  std::string text_;
};

void write_json(JsonWriter& out, const ExactBytes& bytes);

}  // namespace tierpilot
