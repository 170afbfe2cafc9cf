#include "base/text/printable.h"

#include "base/text/utf8.h"

namespace tierpilot {
namespace {

bool continues(char byte) {
  return (byte & 0xC0) == 0x80;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text);
  const bool utf8 = is_utf8(text);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    if (utf8 && byte == 0xC2 && static_cast<unsigned char>(out[i + 1]) < 0xA0) {
      out[i] = out[i + 1] = '?';  // C1 takes two bytes
      ++i;
    } else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
      out[i] = '?';
    }
  }
  return out;
}

std::string printable(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return printable(text);
  size_t end = most_bytes;
  while (end > 0 && continues(text[end])) --end;
  return printable(text.substr(0, end)) + "...";
}

}  // namespace tierpilot
