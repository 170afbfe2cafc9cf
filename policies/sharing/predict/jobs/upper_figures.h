// Upper figures of what a training will use, and the margins that they need.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "policies/sharing/predict/jobs/margins.h"
#include "policies/sharing/predict/jobs/training_table.h"

namespace tierpilot::sharing {

// Of logarithms. Cores have none of use, which follows from the time.
struct Margins {
  double milli = 0, run = 0;  // 95 % of jobs of architectures never seen stay below
  double memory = 0;          // 99.5 % of them
};

// What is said of a training.
struct SaidUse {
  double milli = 0, step_s = 0, memory_bytes = 0;
};

double upper_milli(double milli, double margin);
// `step_s` is what an iteration takes whose data is there.
double upper_iteration_s(double step_s, const ModelCard& card, double margin);
double upper_memory_bytes(double bytes, double margin);

// Gathers what would have been needed of trainings whose group was left out while learning.
class NeededMargins {
 public:
  void add(const std::string& group, const SaidUse& said, const MeasuredTraining& measured);
  Margins margins() const;

 private:
  Exceeds milli_, run_, memory_;
};

Margins larger(const Margins& a, const Margins& b);
// A few architectures, and rows that are all alike, tell little of others.
Margins least_margins(size_t architectures);

nlohmann::json margins_json(const Margins& margins);
// What makes upper figures smaller, or more than any, is none.
bool is_margin(double value);
bool are_margins(const Margins& margins);
// Throws nlohmann's exceptions where a field is missing or of another type.
Margins read_margins(const nlohmann::json& saved);

}  // namespace tierpilot::sharing
