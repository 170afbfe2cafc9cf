#include "policies/quality/quality_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "policies/quality/fair_share.h"
#include "policies/quality/gain_curve.h"

namespace tierpilot::quality {
namespace {

class Quality : public Allocator {
 public:
  explicit Quality(const QualitySettings& settings) : settings_(settings) {}

  std::string reason(std::string_view family) const override {
    return fmt::format("cores go where they lower the loss most; foretold by {}",
                       family.empty() ? "the last change" : family);
  }

  std::vector<double> allocate(std::span<const JobState> jobs, const Cores& cores) override {
    auto given = floors(jobs, cores);
    hurry_newcomers(jobs, cores, given);
    double left = cores.total - std::accumulate(given.begin(), given.end(), 0.0);
    const GainOptions options{.horizon_s = std::max(cores.period_s, settings_.horizon_s),
                              .optimism = settings_.optimism,
                              .held_bonus = settings_.held_bonus};
    std::vector<Segment> segments;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!foretold(jobs[i])) continue;
      const double urgency = deadline_factor(jobs[i], cores);
      for (auto segment : gain_segments(jobs[i], i, options)) {
        segment.gain *= urgency;
        segments.push_back(segment);
      }
    }
    std::stable_sort(segments.begin(), segments.end(),
                     [](const Segment& a, const Segment& b) { return a.gain > b.gain; });
    for (const auto& segment : segments) {
      // Whole units may be more than the job can use.
      const double most = std::min(left, jobs[segment.job].max_cores - given[segment.job]);
      const double more = std::clamp(in_units(segment.to - given[segment.job], cores.unit), 0.0,
                                     std::max(most, 0.0));
      given[segment.job] += more;
      left -= more;
    }
    spread_left(jobs, left, given);
    return given;
  }

 private:
  bool foretold(const JobState& job) const {
    return job.predictor && job.one_core_s > 0 && job.largest_change > 0 &&
           job.reports >= settings_.least_reports;
  }
  static double in_units(double cores, double unit) {
    return cores <= 0 ? 0 : std::ceil(cores / unit - 1e-9) * unit;
  }
  // What nobody goes below: a part of the fair share, and all of it for jobs that say nothing yet.
  std::vector<double> floors(std::span<const JobState> jobs, const Cores& cores) const {
    auto shares = fair_shares(jobs, cores.total, true);
    for (size_t i = 0; i < jobs.size(); ++i)
      if (foretold(jobs[i]))
        shares[i] = std::min(jobs[i].max_cores, std::max(settings_.floor_share * shares[i],
                                                         std::min(jobs[i].min_cores, shares[i])));
    return shares;
  }
  void hurry_newcomers(std::span<const JobState> jobs, const Cores& cores,
                       std::vector<double>& given) const {
    const auto fair = fair_shares(jobs, cores.total, true);
    std::vector<JobState> newcomers(jobs.begin(), jobs.end());
    for (size_t i = 0; i < newcomers.size(); ++i) {
      auto& job = newcomers[i];
      const bool is_new = !foretold(jobs[i]) && jobs[i].reports < settings_.least_reports &&
                          cores.now_s - jobs[i].arrival_s < settings_.newcomer_s;
      // Until its first report it loads, mostly with one thread.
      const double most =
          std::min(job.max_cores, job.reports > 0 ? settings_.newcomer_shares * fair[i] : 1.0);
      job.max_cores = is_new ? std::max(0.0, most - given[i]) : 0;
    }
    const double spare = cores.total - std::accumulate(given.begin(), given.end(), 0.0);
    const auto more =
        fair_shares(newcomers, std::min(spare, settings_.newcomer_part * cores.total), true);
    for (size_t i = 0; i < given.size(); ++i) given[i] += more[i];
  }
  // A job that would miss its deadline at its present pace is worth more the nearer that is.
  double deadline_factor(const JobState& job, const Cores& cores) const {
    if (job.deadline_s <= cores.now_s) return 1;
    const double left_s = job.deadline_s - cores.now_s;
    const auto then = job.predictor->at(
        job.iterations + iterations_in(job, left_s, std::max(job.cores, cores.unit)));
    return then && then->loss > job.deadline_loss ? settings_.deadline_bonus : 1;
  }
  // Work conserving: what no prediction wants is shared fairly among those that can use more.
  static void spread_left(std::span<const JobState> jobs, double left, std::vector<double>& given) {
    if (left <= 0) return;
    std::vector<JobState> room(jobs.begin(), jobs.end());
    for (size_t i = 0; i < room.size(); ++i) room[i].max_cores -= given[i];
    const auto more = fair_shares(room, left, true);
    for (size_t i = 0; i < given.size(); ++i) given[i] += more[i];
  }

  QualitySettings settings_;
};

}  // namespace

std::unique_ptr<Allocator> make_quality(const QualitySettings& settings) {
  return std::make_unique<Quality>(settings);
}

}  // namespace tierpilot::quality
