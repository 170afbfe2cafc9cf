#include "coordinator/core/elastic/training_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "policies/quality/quality_allocator.h"

namespace tierpilot {

void TrainingRecord::add(const JobPoint& report, double cores) {
  const bool goes_on = last_ && last_->attempt == report.attempt &&
                       report.iteration > last_->iteration && report.at_ms > last_->at_ms;
  if (goes_on) {
    const double iterations = static_cast<double>(report.iteration - last_->iteration);
    const double seconds = static_cast<double>(report.at_ms - last_->at_ms) / 1e3;
    if (cores > 0) throughput_.add(cores, iterations / seconds);
    if (report.cpu_ns > last_->cpu_ns)
      cost_.add(1, static_cast<double>(report.cpu_ns - last_->cpu_ns) / 1e9 / iterations);
  }
  if (const auto loss = to_lower(report)) {
    predictor_->observe({static_cast<double>(report.iteration), *loss});
    highest_ = losses_ ? std::max(highest_, *loss) : *loss;
    lowest_ = losses_ ? std::min(lowest_, *loss) : *loss;
    newest_ = *loss;
    ++losses_;
  }
  last_ = report;
}

std::optional<double> TrainingRecord::to_lower(const JobPoint& report) const {
  const auto* figure = goal_.measure.empty() ? &report.loss : nullptr;
  for (const auto& [name, value] : report.measures)
    if (name == goal_.measure && !figure) figure = &value;
  if (!figure || !figure->value || !std::isfinite(*figure->value)) return {};
  return goal_.rises ? -*figure->value : *figure->value;
}

std::string TrainingRecord::measure() const {
  return goal_.measure.empty() ? "loss" : fmt::format("measure '{}'", goal_.measure);
}

void TrainingRecord::describe(quality::JobState& into) const {
  into.iterations = last_ ? static_cast<double>(last_->iteration) : 0;
  into.one_core_s = cost_.cpu_s(1).value_or(0);
  into.largest_change = highest_ - lowest_;
  into.newest_loss = newest_;
  into.deadline_loss = goal_.rises ? -goal_.goal : goal_.goal;
  into.reports = losses_;
  into.throughput = &throughput_;
  into.predictor = losses_ > 0 ? predictor_.get() : nullptr;
}

std::optional<double> TrainingRecord::loss_left() const {
  if (highest_ <= lowest_) return {};
  return 1 - (highest_ - newest_) / fall();
}

double TrainingRecord::fall() const {
  if (highest_ <= lowest_) return 0;
  const auto at_end = predictor_->at(last_iteration());
  return highest_ - (at_end && at_end->loss < lowest_ ? at_end->loss : lowest_);
}

double TrainingRecord::last_iteration() const {
  constexpr double kFarAhead = 10;
  if (last_->iterations > 0) return static_cast<double>(last_->iterations);
  return kFarAhead * static_cast<double>(last_->iteration);
}

std::string TrainingRecord::not_foretold() const {
  const uint64_t enough = quality::QualitySettings{}.least_reports;
  if (!last_) return "it has reported nothing";
  if (losses_ == 0) return fmt::format("it has not reported its {}", measure());
  if (losses_ < enough)
    return fmt::format("it has reported its {} {} times, {} are needed", measure(), losses_,
                       enough);
  if (highest_ <= lowest_) return fmt::format("its {} has not changed", measure());
  if (!cost_.cpu_s(1)) return "its iterations do not rise, or their CPU time is not known";
  return "";
}

}  // namespace tierpilot
