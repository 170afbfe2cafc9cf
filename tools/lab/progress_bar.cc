#include "tools/lab/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot::lab {
namespace {

constexpr int64_t kIntervalNs = 100'000'000;
constexpr size_t kCells = 40;

}  // namespace

bool ProgressBar::show(double share) {
  const int64_t now_ns = system_clock().boot_ns();
  if (!terminal_ || now_ns - shown_ns_ < kIntervalNs) return true;
  shown_ns_ = now_ns;
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kCells);
  const double gone_s = static_cast<double>(now_ns - begin_ns_) * 1e-9;
  const auto left =
      share > 0 ? fmt::format("{:.0f} s left", gone_s / share * (1 - share)) : std::string();
  fmt::print(out_, "\r[{}{}] {:3.0f} %  {:<16}", std::string(full, '#'),
             std::string(kCells - full, '.'), share * 100, left);
  std::fflush(out_);
  return true;
}

void ProgressBar::clear() {
  if (shown_ns_ == 0) return;
  fmt::print(out_, "\r{:70}\r", "");
  std::fflush(out_);
}

}  // namespace tierpilot::lab
