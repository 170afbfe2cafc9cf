#include "tools/demo/progress.h"

namespace tierpilot::demo {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";
constexpr size_t kColumns = 79;

}  // namespace

void Progress::show(const std::string& text) {
  if (terminal_) {
    out_ << kEraseLine << text.substr(0, kColumns) << std::flush;
    return;
  }
  const int64_t now_ms = clock_.boot_ns() / 1'000'000;
  if (last_ms_ != INT64_MIN && now_ms - last_ms_ < kPlainIntervalMs) return;
  last_ms_ = now_ms;
  out_ << text << std::endl;
}

void Progress::done(const std::string& text) {
  out_ << (terminal_ ? kEraseLine : "") << text << std::endl;
  last_ms_ = INT64_MIN;
}

}  // namespace tierpilot::demo
