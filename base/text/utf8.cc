#include "base/text/utf8.h"

namespace tierpilot {
namespace {

struct Form {
  unsigned char first_low, first_high;    // of the leading byte
  unsigned char second_low, second_high;  // of the one behind it; all further are 80 to bf
  size_t bytes;
};

// Table 3-7 of the Unicode Standard: well-formed UTF-8 byte sequences.
constexpr Form kForms[] = {
    {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

// Of the character that `bytes` begins with; 0: it is none.
size_t character_bytes(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (const auto& form : kForms) {
    if (at(0) < form.first_low || at(0) > form.first_high) continue;
    if (form.bytes == 1) return 1;
    if (bytes.size() < form.bytes || at(1) < form.second_low || at(1) > form.second_high) return 0;
    for (size_t i = 2; i < form.bytes; ++i)
      if (at(i) < 0x80 || at(i) > 0xbf) return 0;
    return form.bytes;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = character_bytes(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string beginning(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  text.resize(most);
  return text + "...";
}

}  // namespace tierpilot
