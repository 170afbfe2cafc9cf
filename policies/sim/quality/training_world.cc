#include "policies/sim/quality/training_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kLeastReportsOfRun = 8;

// Of the trace's jobs, for as many as the cell has; empty where there is no trace.
Result<std::vector<double>> gaps_of(const TrainingCell& cell, uint64_t seed,
                                    const std::vector<double>& trace_s) {
  std::vector<double> gaps_s;
  if (trace_s.empty()) return gaps_s;
  if (trace_s.size() <= cell.jobs)
    return fail(ErrorCode::kInvalid,
                fmt::format("the trace has {} jobs, and '{}' needs more than {}", trace_s.size(),
                            cell.name, cell.jobs));
  SeededRandom random(derived_seed(seed, "training arrivals"));
  const size_t from = random.below(trace_s.size() - cell.jobs);
  const double span_s = trace_s[from + cell.jobs] - trace_s[from];
  // Where all came at once, they do here.
  const double scale = span_s > 0 ? cell.mean_gap_s * cell.jobs / span_s : 0;
  for (size_t i = from; i < from + cell.jobs; ++i)
    gaps_s.push_back((trace_s[i + 1] - trace_s[i]) * scale);
  return gaps_s;
}

}  // namespace

std::optional<TrueCurve> TrueCurve::of(const LossCurve& curve) {
  TrueCurve result;
  for (const auto& point : curve.points) {
    if (!std::isfinite(point.loss) || !std::isfinite(point.iteration)) continue;
    auto& reports = result.reports_;
    if (!reports.empty() && point.iteration <= reports.back().iteration) continue;
    reports.push_back(point);
    const auto& best = result.best_;
    result.best_.push_back(best.empty() ? point.loss : std::min(best.back(), point.loss));
  }
  if (result.reports_.size() < kLeastReportsOfRun || !(result.best_.back() < result.best_.front()))
    return {};
  const double first = result.reports_.front().iteration;
  for (auto& report : result.reports_) report.iteration -= first;
  return result;
}

double TrueCurve::best_at(double iteration) const {
  const auto after = std::upper_bound(
      reports_.begin(), reports_.end(), iteration,
      [](double at, const quality::LossPoint& report) { return at < report.iteration; });
  const size_t i = after - reports_.begin();
  if (i == 0) return best_.front();
  if (i == reports_.size()) return best_.back();
  const double part =
      (iteration - reports_[i - 1].iteration) / (reports_[i].iteration - reports_[i - 1].iteration);
  return best_[i - 1] + part * (best_[i] - best_[i - 1]);
}

double TrueCurve::left_at(double iteration) const {
  return (best_at(iteration) - best_.back()) / (best_.front() - best_.back());
}

Result<TrainingWorld> draw_world(const TrainingCell& cell, const std::vector<LossCurve>& curves,
                                 uint64_t seed, const std::vector<double>& trace_s) {
  TrainingWorld world{.cell = cell, .curves = {}, .jobs = {}};
  std::map<std::string, std::vector<size_t>> families;
  for (const auto& curve : curves)
    if (auto usable = TrueCurve::of(curve)) {
      families[curve.family].push_back(world.curves.size());
      world.curves.push_back(std::move(*usable));
    }
  if (families.empty())
    return fail(ErrorCode::kInvalid,
                "no curve has eight finite losses of which the first is not the lowest");
  const auto gaps_s = gaps_of(cell, seed, trace_s);
  if (!gaps_s) return tl::unexpected(gaps_s.error());
  SeededRandom random(derived_seed(seed, "training jobs"));
  double now_s = 0;
  for (uint32_t i = 0; i < cell.jobs; ++i) {
    const double gap_s = random.exponential(cell.mean_gap_s);
    now_s += gaps_s->empty() ? gap_s : (*gaps_s)[i];
    const auto& family =
        std::next(families.begin(), static_cast<long>(random.below(families.size())))->second;
    TrainingJob job{.curve = family[random.below(family.size())],
                    .arrival_s = now_s,
                    .one_core_s = 0,
                    .serial_share = 0,
                    .max_cores = cell.max_cores};
    job.one_core_s = random.log_uniform(cell.least_work_s, cell.most_work_s) /
                     world.curves[job.curve].iterations();
    job.serial_share = random.log_uniform(0.01, 0.2);
    world.jobs.push_back(job);
  }
  return world;
}

}  // namespace tierpilot::sim
