// What a running job has shown of itself, as allocators of cores want it: its loss, what an
// iteration costs, and how much faster more cores make it. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "coordinator/job_point.h"
#include "model/task_spec.h"
#include "policies/quality/allocator.h"
#include "policies/quality/iteration_cost.h"

namespace tierpilot {

class TrainingRecord {
 public:
  // `predictor` as in policies/quality/predictor.h.
  TrainingRecord(std::unique_ptr<quality::Predictor> predictor, TrainingGoal goal)
      : predictor_(std::move(predictor)), goal_(std::move(goal)) {}

  // `cores`: what it might use since the report before; 0: not known, or it has changed.
  void add(const JobPoint& report, double cores);

  // Fills what is known of it. The state looks at this record.
  void describe(quality::JobState& into) const;
  uint64_t losses() const { return losses_; }
  // How far the highest is above the lowest, known or foretold of its last iteration.
  double fall() const;
  // How far the last one is above the lowest, as a part of that; nothing before it has changed.
  std::optional<double> loss_left() const;
  // What keeps its loss from being foretold; empty: nothing does.
  std::string not_foretold() const;
  std::string family() const { return std::string(predictor_->family()); }

 private:
  // What is to fall: its loss, another measure, or the negative of one that is to rise.
  std::optional<double> to_lower(const JobPoint& report) const;
  std::string measure() const;  // for people
  // That it tells, or one far ahead of where it is.
  double last_iteration() const;

  std::unique_ptr<quality::Predictor> predictor_;
  TrainingGoal goal_;
  quality::Throughput throughput_;
  quality::IterationCost cost_;
  std::optional<JobPoint> last_;
  uint64_t losses_ = 0;
  double highest_ = 0, lowest_ = 0, newest_ = 0;
};

}  // namespace tierpilot
