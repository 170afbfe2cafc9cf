// Training jobs for a simulation: recorded curves, arrivals and work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/quality/curve_files.h"

namespace tierpilot::sim {

// What a job's loss will be; known to the simulation, and to the clairvoyant.
class TrueCurve {
 public:
  // Iterations are counted from the curve's first report. At least kLeastReports finite losses, of
  // which the first is not the lowest; else nothing.
  static std::optional<TrueCurve> of(const LossCurve& curve);

  const std::vector<quality::LossPoint>& reports() const { return reports_; }
  double iterations() const { return reports_.back().iteration; }
  // The lowest loss up to an iteration, between reports on a straight line.
  double best_at(double iteration) const;
  // The part of all that the job will gain that is still to come: 1 at the beginning, 0 at the end.
  double left_at(double iteration) const;

 private:
  std::vector<quality::LossPoint> reports_;
  std::vector<double> best_;  // of each report
};

struct TrainingJob {
  size_t curve = 0;
  double arrival_s = 0;
  double one_core_s = 0;    // of an iteration
  double serial_share = 0;  // of Amdahl's law
  double max_cores = 1;
};

struct TrainingCell {
  std::string name;
  double cores = 20;
  uint32_t jobs = 80;
  double mean_gap_s = 15;  // of Poisson arrivals
  double period_s = 10;
  double window_s = 840;                         // in which losses over time count
  double max_cores = 8;                          // of a job
  double least_work_s = 100, most_work_s = 800;  // CPU time on one core, log-uniform
};

struct TrainingWorld {
  TrainingCell cell;
  std::vector<TrueCurve> curves;
  std::vector<TrainingJob> jobs;  // by arrival
};

// Each job draws a family first and then a curve of it, so that large families do not rule.
// `trace_s`: when the jobs of a trace arrived, rising; the jobs come in the rhythm of so many of
// them in a row, from a place that is drawn, as fast as the cell says. Empty: a Poisson process.
// kInvalid when no curve is fit for it, or when the trace has too few jobs.
Result<TrainingWorld> draw_world(const TrainingCell& cell, const std::vector<LossCurve>& curves,
                                 uint64_t seed, const std::vector<double>& trace_s = {});

}  // namespace tierpilot::sim
