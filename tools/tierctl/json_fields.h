// Objects of a JSON document whose keys must all be known, and values with their place in it.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tierpilot::tierctl {

using nlohmann::ordered_json;

// Thrown by readers of one document only: the position in it travels with the stack.
struct Wrong {
  std::string place, why;
};

// One object whose keys must all be known; `place` is its path in the document.
class Fields {
 public:
  Fields(const ordered_json& object, std::string place)
      : object_(object), place_(std::move(place)) {
    if (!object.is_object()) throw Wrong{place_, "must be an object"};
  }

  const ordered_json* find(const char* key) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  bool has(const char* key) const { return object_.contains(key); }
  std::string place(const char* key) const { return place_.empty() ? key : place_ + "." + key; }

  // Calls `read(value, place)` when the key is there.
  template <class Read>
  void with(const char* key, Read read) {
    if (const auto* value = find(key)) read(*value, place(key));
  }

  void finish() const {
    for (const auto& [key, value] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        throw Wrong{place_.empty() ? "top level" : place_,
                    fmt::format("unknown key '{}'; there are: {}", key, fmt::join(known_, ", "))};
  }

 private:
  const ordered_json& object_;
  std::string place_;
  std::vector<std::string> known_;
};

inline std::string text(const ordered_json& value, const std::string& place) {
  if (!value.is_string()) throw Wrong{place, "must be a string"};
  auto string = value.get<std::string>();
  if (string.find('\0') != std::string::npos)
    throw Wrong{place, "must not contain a NUL character"};
  return string;
}

// Reads a list by calling `read(item, place)` for each item.
template <class Read>
void each(const ordered_json& value, const std::string& place, Read read) {
  if (!value.is_array()) throw Wrong{place, "must be a list"};
  for (size_t i = 0; i < value.size(); ++i) read(value[i], fmt::format("{}[{}]", place, i));
}

inline std::vector<std::string> texts(const ordered_json& value, const std::string& place) {
  std::vector<std::string> list;
  each(value, place, [&](const auto& item, const auto& at) { list.push_back(text(item, at)); });
  return list;
}

// A number of the base unit, or text that `parse` understands.
template <class Parse>
auto quantity(const ordered_json& value, const std::string& place, const char* what, Parse parse) {
  if (!value.is_string() && !value.is_number_unsigned())
    throw Wrong{place, fmt::format("must be {}", what)};
  const auto parsed = parse(value.is_string() ? value.get<std::string>() : value.dump());
  if (!parsed) throw Wrong{place, parsed.error().message};
  return *parsed;
}

}  // namespace tierpilot::tierctl
