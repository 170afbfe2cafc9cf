// What predictors see of a model card.
#pragma once

#include "policies/sharing/card/model_card.h"
#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

// Of each a training step takes a time that is close to proportional: operators, operations by
// kind, elements that are moved, tensors and parameters that an optimizer steps. In units of about
// a millisecond on a usual core.
Row work_row(const ModelCard& card);
// What each column of it is made of, and how much of it its unit is.
enum class WorkKind { kCalls, kOperations, kElements };
struct WorkPart {
  WorkKind kind = WorkKind::kCalls;
  double unit = 1;
};
const std::vector<WorkPart>& work_parts();
// Bytes that a training may have resident, by what has them, in MiB.
Row memory_row(const ModelCard& card);
// Logarithms of totals, and of what each kind has.
Row figures_row(const ModelCard& card);
inline constexpr size_t kTotalFigures = 12;  // its first columns are totals
// As published: the largest input of each kind, batch, iterations, input size.
Row published_row(const ModelCard& card);

// One that keeps as much as those that trainings were measured with; also where a card names none.
bool is_known_optimizer(const std::string& optimizer);
// Values that an optimizer keeps for each parameter; as Adam does, two, where it is not known.
int optimizer_states(const std::string& optimizer);

}  // namespace tierpilot::sharing
