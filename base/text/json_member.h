// Members of JSON from anybody: a copy of a value that is nested deep would be the end of the
// stack.
#pragma once

#include <nlohmann/json.hpp>

namespace tierpilot {

// Whether the object has the member, and it is this.
template <class Json, class Value>
bool member_is(const Json& object, const char* key, const Value& value) {
  const auto at = object.find(key);
  return at != object.end() && *at == value;
}

}  // namespace tierpilot
