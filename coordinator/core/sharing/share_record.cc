#include "coordinator/core/sharing/share_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tierpilot {
namespace {

constexpr double kWindow_s = 1;         // that use and pace are measured over, at least
constexpr double kAsGoodAsDone = 0.02;  // of what takes longer than predicted, until it is done
constexpr double kNewest = 0.4;         // weight of the newest window
constexpr uint32_t kLeastNeed = 10;
constexpr double kAboveUse = 1.05;         // a share that does not hold back what was measured
constexpr uint64_t kFirstIterations = 10;  // by the first report that tells of any,
constexpr double kFirstPart = 0.05;        // or this part of all

// What it would use of the unit if it never waited for a CPU: of the time that it does not wait it
// computes a part. Several threads that are always ready wait more than all the time.
double wanted_part(double used, double waited) {
  if (used + waited >= 1) return used + waited;
  return used / (1 - waited);
}

// Stays until it is a tenth off.
void follow(double& about, double now) {
  constexpr double kOff = 0.1;
  if (std::abs(now - about) > kOff * about) about = now;
}

double averaged(const std::optional<double>& before, double now) {
  return before ? *before + kNewest * (now - *before) : now;
}

}  // namespace

void ShareRecord::started(double now_s, uint32_t milli) {
  started_s_ = saved_s_ = given_s_ = now_s;
  milli_ = milli;
}

void ShareRecord::foretold(ShareForecast forecast) {
  forecast_ = std::move(forecast);
  if (!used_milli_ && !wanted_milli_) need_milli_ = forecast_.predicted.milli;
}

void ShareRecord::given(double now_s, uint32_t milli) {
  if (milli == milli_) return;
  work_off(now_s);
  milli_ = milli;
  // What was used with another share says little of this one.
  use_from_s_ = pace_from_s_ = 0;
}

void ShareRecord::beside(double now_s, double kept) {
  constexpr double kSame = 1e-3;
  if (std::abs(kept - kept_) < kSame) return;
  work_off(now_s);
  kept_ = kept;
  pace_from_s_ = 0;
}

void ShareRecord::work_off(double now_s) {
  constexpr size_t kMost = 1'000;
  if (started_s_) {
    worked_s_ = worked_s(now_s);
    if (!wanted_milli_ && unmeasured_.size() < kMost)
      unmeasured_.push_back({now_s - given_s_, milli_, kept_});
  }
  given_s_ = now_s;
}

// Who uses little was not held back by a small share before that was seen either.
void ShareRecord::measured_first() {
  if (starts_) return;
  for (const auto& [lasted_s, milli, kept] : std::exchange(unmeasured_, {}))
    worked_s_ += lasted_s * kept *
                 (sharing::speed_with(milli, need_milli_) -
                  sharing::speed_with(milli, forecast_.predicted.milli));
}

double ShareRecord::worked_s(double now_s) const {
  return started_s_ ? worked_s_ + (now_s - given_s_) * speed() : 0;
}

void ShareRecord::add(double now_s, const JobPoint& report, double cores) {
  if (!started_s_) return;
  takes_checkpoints_ = report.takes_checkpoints;
  if (report.milli_units > 0) given(now_s, report.milli_units);
  const bool trains = report.iteration > 0 && !start_s_;
  if (trains && report.iteration > kFirstIterations &&
      report.iteration > kFirstPart * static_cast<double>(report.iterations))
    saw_all_ = false;  // it goes on from a checkpoint
  if (trains || (starts_ && worked_s(now_s) > kLongestStart_s)) end_start(now_s);
  if (report.cpu_ns > 0 && !report.says_something()) measure_use(now_s, report, cores);
  if (report.iterations > 0) measure_pace(now_s, report);
}

// What it used to load and prepare tells nothing of what follows.
void ShareRecord::end_start(double now_s) {
  start_s_ = worked_s(now_s);
  starts_ = false;
  worked_s_ = 0;
  given_s_ = now_s;
  wanted_milli_.reset();
  used_milli_.reset();
  unmeasured_.clear();
  use_from_s_ = 0;
}

void ShareRecord::measure_use(double now_s, const JobPoint& report, double cores) {
  const double window_s = now_s - use_from_s_;
  const bool begins = use_from_s_ == 0 || report.cpu_ns < use_from_ns_;
  if (!begins && window_s < kWindow_s) return;
  if (!begins) {
    const auto part = [&](uint64_t now_ns, uint64_t from_ns) {
      return static_cast<double>(now_ns - std::min(now_ns, from_ns)) / 1e9 / window_s / cores;
    };
    const double used = part(report.cpu_ns, use_from_ns_);
    counted_s_ += window_s;
    counted_milli_s_ += window_s * used * sharing::kWholeUnit;
    used_milli_ = averaged(used_milli_, used * sharing::kWholeUnit);
    const double wanted =
        wanted_part(used, part(report.waited_ns, waited_from_ns_)) * sharing::kWholeUnit;
    const bool is_first = !wanted_milli_;
    // Who is held back by its share gets more at once, and less little by little.
    wanted_milli_ = std::max(averaged(wanted_milli_, wanted), wanted > milli_ ? wanted : 0.0);
    if (!starts_) {
      need_milli_ = static_cast<uint32_t>(std::clamp<double>(
          *wanted_milli_ * kAboveUse, std::min(kLeastNeed, milli_), sharing::kWholeUnit));
      if (is_first) measured_first();
      follow(about_milli_, std::clamp<double>(*wanted_milli_, 1, sharing::kWholeUnit));
    }
  }
  use_from_s_ = now_s;
  use_from_ns_ = report.cpu_ns;
  waited_from_ns_ = report.waited_ns;
}

void ShareRecord::measure_pace(double now_s, const JobPoint& report) {
  iterations_ = report.iterations;
  if (report.iteration != iteration_ || iteration_at_s_ == 0) iteration_at_s_ = now_s;
  iteration_ = report.iteration;
  const double window_s = now_s - pace_from_s_;
  const bool begins = pace_from_s_ == 0 || report.iteration < pace_from_;
  if (!begins && (window_s < kWindow_s || report.iteration == pace_from_)) return;
  if (!begins && report.iteration > pace_from_)
    iteration_s_ = averaged(
        iteration_s_, window_s * speed() / static_cast<double>(report.iteration - pace_from_));
  pace_from_s_ = now_s;
  pace_from_ = report.iteration;
}

void ShareRecord::saved(double now_s) {
  saved_s_ = now_s;
}

double ShareRecord::left_s(double now_s) const {
  if (iteration_s_ && iterations_ > 0) {
    const auto left = static_cast<double>(iterations_ - std::min(iteration_, iterations_));
    return std::max(kAsGoodAsDone * static_cast<double>(iterations_) * *iteration_s_,
                    left * *iteration_s_ - (now_s - iteration_at_s_) * speed());
  }
  const double run_s = forecast_.predicted.run_s - forecast_.predicted.start_s;
  if (run_s <= 0) return 0;
  if (starts_) return start_left_s(now_s) + run_s;
  return std::max(kAsGoodAsDone * run_s, run_s - worked_s(now_s));
}

std::optional<double> ShareRecord::step_s() const {
  if (!iteration_s_ || speed() <= 0) return std::nullopt;
  return *iteration_s_ / speed();
}

double ShareRecord::start_left_s(double now_s) const {
  const double start_s = forecast_.predicted.start_s;
  return starts_ ? std::max(kAsGoodAsDone * start_s, start_s - worked_s(now_s)) : 0;
}

// Who outlasts what nearly all stay below may take as long again.
double ShareRecord::left_upper_s(double now_s) const {
  constexpr double kPaceChanges = 1.1;
  const double left = left_s(now_s);
  if (iteration_s_ || left == 0) return left * kPaceChanges;
  const double known = starts_ ? 0 : forecast_.predicted.start_s;
  const double worked = worked_s(now_s), upper = forecast_.predicted.run_upper_s - known;
  return worked < upper ? std::max(left, upper - worked) : worked;
}

}  // namespace tierpilot
