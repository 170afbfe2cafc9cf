// JSON from text.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace tierpilot {

// Json is nlohmann's json or ordered_json. As their parse(), which takes the compiler three seconds
// in each file that calls it: throws what that throws.
template <class Json>
Json parse_json(std::string_view text);
// Discarded where the text is none.
template <class Json>
Json parse_json_or_discard(std::string_view text);

extern template nlohmann::json parse_json(std::string_view);
extern template nlohmann::ordered_json parse_json(std::string_view);
extern template nlohmann::json parse_json_or_discard(std::string_view);
extern template nlohmann::ordered_json parse_json_or_discard(std::string_view);

}  // namespace tierpilot
