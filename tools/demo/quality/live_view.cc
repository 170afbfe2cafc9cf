#include "tools/demo/quality/live_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tierpilot::demo {
namespace {

constexpr std::array kHeights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr double kPlainEvery_s = 15;

std::string line_of(const JobNow& job, double cores) {
  const auto last =
      job.losses.empty() ? std::string("-") : fmt::format("{:.4g}", job.losses.back());
  return fmt::format("  {:<9} {:>9} {:>4}/{:<4} {} {:>9}  {:>5.2f} {}", job.name,
                     job.state.empty() ? "to come" : job.state, job.iteration, job.iterations,
                     sparkline(job.losses, 24), last, job.cores, core_bar(job.cores, cores, 16));
}

}  // namespace

std::string sparkline(const std::vector<double>& values, size_t width) {
  double low = INFINITY, high = -INFINITY;
  for (const double value : values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  std::string line;
  for (size_t i = 0; i < width; ++i) {
    // With few values each has a place, with many each place has one of them.
    const size_t at = values.size() <= width ? i : i * (values.size() - 1) / (width - 1);
    if (at >= values.size() || !std::isfinite(values[at])) {
      line += ' ';
      continue;
    }
    const double part = high > low ? (values[at] - low) / (high - low) : 0;
    line += kHeights[std::min(kHeights.size() - 1, static_cast<size_t>(part * 8))];
  }
  return line;
}

std::string core_bar(double cores, double most, size_t width) {
  const auto full = static_cast<size_t>(
      std::lround(std::clamp(cores / most, 0.0, 1.0) * static_cast<double>(width)));
  std::string bar;
  for (size_t i = 0; i < width; ++i) bar += i < full ? "█" : "·";
  return bar;
}

void QualityView::begin(const std::string& allocator) {
  allocator_ = allocator;
  lines_ = 0;
  next_s_ = 0;
}

void QualityView::show(double since_s, const std::vector<JobNow>& jobs) {
  if (!terminal_) {
    if (since_s < next_s_) return;
    next_s_ = since_s + kPlainEvery_s;
    out_ << fmt::format("{:<8} {:>4.0f} s ", allocator_, since_s);
    for (const auto& job : jobs)
      if (job.cores > 0) out_ << fmt::format(" {} {:.2f}", job.name, job.cores);
    out_ << '\n' << std::flush;
    return;
  }
  if (lines_ > 0) out_ << fmt::format("\x1b[{}A", lines_);
  out_ << fmt::format("\x1b[2K{}, {:.0f} s: loss of each job, and its cores\n", allocator_,
                      since_s);
  for (const auto& job : jobs) out_ << "\x1b[2K" << line_of(job, cores_) << '\n';
  out_ << std::flush;
  lines_ = jobs.size() + 1;
}

}  // namespace tierpilot::demo
