#include "coordinator/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/utf8.h"

namespace tierpilot {

using nlohmann::json;

void JsonWriter::number(double value) {
  // What its serializer uses, so that texts stay as they were.
  char digits[64];
  if (std::isfinite(value))
    text_.append(digits, nlohmann::detail::to_chars(digits, digits + sizeof digits, value));
  else
    text_ += "null";
}

void JsonWriter::string(std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
  });
  // What is not UTF-8 is replaced: what a node or a user is called must not stop the store.
  if (!plain)
    text_ += json(value).dump(-1, ' ', false, json::error_handler_t::replace);
  else
    (text_ += '"').append(value) += '"';
}

void write_json(JsonWriter& out, const ExactBytes& exact) {
  if (is_utf8(exact.bytes)) return out.write(exact.bytes);
  std::string hex;
  for (const unsigned char byte : exact.bytes) hex += fmt::format("{:02x}", byte);
  out.object([&] { out.put("hex", hex); });
}

}  // namespace tierpilot
