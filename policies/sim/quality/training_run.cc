#include "policies/sim/quality/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "policies/quality/allocator.h"
#include "policies/quality/quality_allocator.h"

namespace tierpilot::sim {
namespace {

constexpr double kEnded = 0.01;     // of the loss left
constexpr double kStarved = 0.25;   // of an equal share
constexpr double kSteps = 5;        // of progress in a period
constexpr double kLongest_s = 1e7;  // since the last one came

// Knows what comes.
class Oracle : public quality::Predictor {
 public:
  explicit Oracle(const TrueCurve& curve) : curve_(curve) {}
  void observe(quality::LossPoint) override {}
  std::optional<quality::LossForecast> at(double iteration) const override {
    const double loss = curve_.best_at(iteration);
    return quality::LossForecast{loss, loss, loss};
  }

 private:
  const TrueCurve& curve_;
};

struct RunningJob {
  size_t number = 0;
  const TrueCurve* curve = nullptr;
  std::unique_ptr<quality::Predictor> predictor;
  quality::Throughput throughput;
  double iterations = 0, cores = 0;
  size_t reported = 0;
  double highest = 0, lowest = 0, newest = 0;
  double starving_s = 0;
  bool had_share = false;
};

class TrainingRun {
 public:
  TrainingRun(const TrainingWorld& world, std::unique_ptr<quality::Allocator> allocator, bool knows)
      : world_(world),
        allocator_(std::move(allocator)),
        knows_(knows),
        step_s_(world.cell.period_s / kSteps) {
    result_.jobs.resize(world.jobs.size());
  }

  Result<TrainingResult> run() {
    double decided_s = -1e9;
    const double longest_s = kLongest_s + (world_.jobs.empty() ? 0 : world_.jobs.back().arrival_s);
    while (arrived_ < world_.jobs.size() || !running_.empty()) {
      if (now_s_ >= longest_s)
        return fail(ErrorCode::kExhausted,
                    fmt::format("{} of {} jobs have not ended {:g} s after the last one came: give "
                                "them more cores, less work, or longer gaps",
                                running_.size(), world_.jobs.size(), kLongest_s));
      const bool changed = admit() | dismiss();
      if (changed || now_s_ - decided_s >= world_.cell.period_s - 1e-9) {
        decide();
        decided_s = now_s_;
      }
      measure();
      for (auto& job : running_) progress(job);
      now_s_ += step_s_;
    }
    finish();
    return std::move(result_);
  }

 private:
  bool admit() {
    const size_t before = arrived_;
    for (; arrived_ < world_.jobs.size() && world_.jobs[arrived_].arrival_s <= now_s_; ++arrived_) {
      const auto& job = world_.jobs[arrived_];
      RunningJob running{.number = arrived_,
                         .curve = &world_.curves[job.curve],
                         .predictor = {},
                         .throughput = {}};
      if (knows_)
        running.predictor = std::make_unique<Oracle>(*running.curve);
      else
        running.predictor = quality::make_default_predictor();
      if (knows_)
        for (const double cores : {1.0, 2.0, 4.0, 8.0})
          running.throughput.add(cores, quality::amdahl_speed(cores, job.serial_share));
      report(running);
      running_.push_back(std::move(running));
    }
    return arrived_ != before;
  }
  bool dismiss() {
    return std::erase_if(running_, [&](const RunningJob& job) {
             if (job.curve->left_at(job.iterations) > kEnded) return false;
             result_.jobs[job.number].completion_s = now_s_ - world_.jobs[job.number].arrival_s;
             return true;
           }) > 0;
  }
  void report(RunningJob& job) {
    const auto& reports = job.curve->reports();
    for (; job.reported < reports.size() && reports[job.reported].iteration <= job.iterations;
         ++job.reported) {
      const double loss = reports[job.reported].loss;
      job.predictor->observe(reports[job.reported]);
      job.newest = loss;
      job.highest = job.reported ? std::max(job.highest, loss) : loss;
      job.lowest = job.reported ? std::min(job.lowest, loss) : loss;
    }
  }
  void decide() {
    std::vector<quality::JobState> states;
    for (const auto& job : running_) {
      const auto& asked = world_.jobs[job.number];
      states.push_back({.id = job.number + 1,
                        .arrival_s = asked.arrival_s,
                        .max_cores = asked.max_cores,
                        .cores = job.cores,
                        .iterations = job.iterations,
                        .one_core_s = asked.one_core_s,
                        .largest_change = knows_ ? job.curve->best_at(0) - job.curve->best_at(1e300)
                                                 : job.highest - job.lowest,
                        .newest_loss = job.newest,
                        .reports = knows_ ? 1'000'000 : job.reported,
                        .throughput = &job.throughput,
                        .predictor = job.predictor.get()});
    }
    const auto given = allocator_->allocate(states, {.total = world_.cell.cores,
                                                     .unit = 0.1,
                                                     .period_s = world_.cell.period_s,
                                                     .now_s = now_s_});
    for (size_t i = 0; i < running_.size(); ++i) {
      moved_ += std::abs(given[i] - running_[i].cores) / 2;
      running_[i].cores = given[i];
    }
  }
  void progress(RunningJob& job) {
    const auto& asked = world_.jobs[job.number];
    const double speed = quality::amdahl_speed(job.cores, asked.serial_share);
    if (job.cores > 0 && !knows_) job.throughput.add(job.cores, speed / asked.one_core_s);
    const double before = job.iterations;
    job.iterations += step_s_ * speed / asked.one_core_s;
    auto& outcome = result_.jobs[job.number];
    for (size_t i = 0; i < kLossLeft.size(); ++i)
      if (job.curve->left_at(before) > kLossLeft[i] &&
          job.curve->left_at(job.iterations) <= kLossLeft[i])
        outcome.reached_s[i] = now_s_ + step_s_ - asked.arrival_s;
    const double share =
        std::min(world_.cell.cores / static_cast<double>(running_.size()), asked.max_cores);
    job.starving_s = job.cores < kStarved * share - 1e-9 ? job.starving_s + step_s_ : 0;
    outcome.starved_s = std::max(outcome.starved_s, job.starving_s);
    if (!job.had_share && job.cores >= 0.99 * share) {
      job.had_share = true;
      result_.rebalance_s += now_s_ - asked.arrival_s;
      ++rebalanced_;
    }
    report(job);
  }
  // The state of this step, as long as the window lasts.
  void measure() {
    if (now_s_ >= world_.cell.window_s || arrived_ == 0) return;
    double left = 0, used = 0, wanted = 0;
    std::vector<std::pair<double, double>> by_loss;  // loss left, cores
    for (const auto& job : running_) {
      by_loss.push_back({job.curve->left_at(job.iterations), job.cores});
      left += by_loss.back().first;
      used += job.cores;
      wanted += world_.jobs[job.number].max_cores;
    }
    ++samples_;
    result_.loss_at_end = left / static_cast<double>(arrived_);
    result_.mean_loss += result_.loss_at_end;
    if (running_.empty()) return;
    ++running_samples_;
    result_.mean_running_loss += left / static_cast<double>(running_.size());
    result_.utilisation += used / std::min(wanted, world_.cell.cores);
    add_groups(by_loss, used);
  }
  // A job on the border of two groups counts for both, by its parts.
  void add_groups(std::vector<std::pair<double, double>>& by_loss, double used) {
    if (used <= 0) return;
    std::sort(by_loss.rbegin(), by_loss.rend());
    double begin = 0;
    for (size_t group = 0; group < kLossGroups.size(); ++group) {
      const double end = begin + kLossGroups[group] * static_cast<double>(by_loss.size());
      for (size_t i = 0; i < by_loss.size(); ++i) {
        const auto at = static_cast<double>(i);
        const double part = std::min(end, at + 1) - std::max(begin, at);
        if (part > 0) result_.group_shares[group] += part * by_loss[i].second / used;
      }
      begin = end;
    }
  }
  void finish() {
    result_.mean_loss /= std::max(samples_, 1.0);
    result_.mean_running_loss /= std::max(running_samples_, 1.0);
    result_.utilisation /= std::max(running_samples_, 1.0);
    for (auto& share : result_.group_shares) share /= std::max(running_samples_, 1.0);
    result_.rebalance_s /= std::max(rebalanced_, 1.0);
    result_.moves_per_minute = moved_ / std::max(now_s_ / 60, 1e-9);
  }

  const TrainingWorld& world_;
  std::unique_ptr<quality::Allocator> allocator_;
  bool knows_;
  double step_s_, now_s_ = 0;
  size_t arrived_ = 0;
  std::vector<RunningJob> running_;
  double samples_ = 0, running_samples_ = 0, moved_ = 0, rebalanced_ = 0;
  TrainingResult result_;
};

}  // namespace

Result<TrainingResult> run_training(const TrainingWorld& world, const std::string& allocator) {
  const bool knows = allocator == "clairvoyant";
  auto made = quality::make_allocator(knows ? "quality" : allocator);
  if (knows) made = quality::make_quality({.optimism = 0, .least_reports = 0});
  if (!made) return tl::unexpected(made.error());
  return TrainingRun(world, std::move(*made), knows).run();
}

}  // namespace tierpilot::sim
