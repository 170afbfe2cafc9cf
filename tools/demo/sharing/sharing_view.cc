#include "tools/demo/sharing/sharing_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tierpilot::demo {
namespace {

constexpr double kPlainEvery_s = 10;
constexpr size_t kBar = 16;

std::string bar(double part) {
  const auto full =
      static_cast<size_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(kBar)));
  std::string text;
  for (size_t i = 0; i < kBar; ++i) text += i < full ? "█" : "·";
  return text;
}

std::string seconds(std::optional<double> value) {
  return value ? fmt::format("{:.0f}", *value) : "-";
}

std::string line_of(double now_s, const SharingJob& job) {
  std::optional<double> promise_left;
  if (job.promise_s && job.id != 0 && !job.has_ended())
    promise_left = job.submitted_s + *job.promise_s - now_s;
  const auto kept = job.has_ended() ? job.kept() : std::nullopt;
  return fmt::format(
      "  {:<11} {:<4} {:<9} {} {:>4.2f} {:>9.2f} {:>8} {:>5} {:>8} {}", job.plan.name,
      job.plan.latency_sensitive ? "soon" : "any", job.id == 0 ? "to come" : job.state,
      bar(job.share), job.share, job.predicted_utilisation,
      job.measured_utilisation ? fmt::format("{:.2f}", *job.measured_utilisation) : "-",
      job.has_ended() ? "-" : seconds(job.left_s), seconds(promise_left),
      kept                    ? (*kept ? "kept" : "missed")
      : job.refused_promise_s ? "not promised"
                              : "");
}

}  // namespace

void LiveShares::begin(const std::string& policy) {
  policy_ = policy;
  lines_ = 0;
  next_s_ = 0;
}

void LiveShares::show(double now_s, double since_s, const std::vector<SharingJob>& jobs) {
  if (!terminal_) {
    if (since_s < next_s_) return;
    next_s_ = since_s + kPlainEvery_s;
    out_ << fmt::format("{:<16} {:>4.0f} s ", policy_, since_s);
    for (const auto& job : jobs)
      if (job.share > 0) out_ << fmt::format(" {} {:.2f}", job.plan.name, job.share);
    out_ << '\n' << std::flush;
    return;
  }
  if (lines_ > 0) out_ << fmt::format("\x1b[{}A", lines_);
  out_ << fmt::format(
      "\x1b[2K{}, {:.0f} s\n\x1b[2K  {:<11} {:<4} {:<9} {:<16} {:<4} {:>9} {:>8} {:>5} {:>8}\n",
      policy_, since_s, "job", "due", "state", "share of a unit", "", "predicted", "measured",
      "left", "promised");
  for (const auto& job : jobs) out_ << "\x1b[2K" << line_of(now_s, job) << '\n';
  out_ << std::flush;
  lines_ = jobs.size() + 2;
}

}  // namespace tierpilot::demo
