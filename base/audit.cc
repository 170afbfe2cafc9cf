#include "base/audit.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "base/utf8.h"

namespace tierpilot {
namespace {

constexpr size_t kMostBytes = 500;

bool continues(char byte) {
  return (byte & 0xC0) == 0x80;
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kMostBytes));
  if (text.size() > out.size()) {
    while (!out.empty() && continues(text[out.size()])) out.pop_back();
    out += "...";
  }
  const bool utf8 = is_utf8(out);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto byte = static_cast<unsigned char>(out[i]);
    // The control characters of ISO 6429 that take two bytes in UTF-8.
    const bool c1 =
        byte == 0xC2 && i + 1 < out.size() && static_cast<unsigned char>(out[i + 1]) < 0xA0;
    if (c1) out[i + 1] = '?';
    if (c1 || byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) out[i] = '?';
  }
  return out;
}

// Beside the log's level, to where it goes.
spdlog::logger& audit_log() {
  static const auto logger = [] {
    const auto& sinks = spdlog::default_logger()->sinks();
    auto made = std::make_shared<spdlog::logger>(spdlog::default_logger()->name(), sinks.begin(),
                                                 sinks.end());
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *logger;
}

}  // namespace

void audit(std::string_view text) {
  if (spdlog::default_logger()->level() == spdlog::level::off) return;
  audit_log().info("audit: {}", printable(text));
}

}  // namespace tierpilot
