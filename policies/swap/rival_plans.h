// Plans of published rules for a step that was read whole: what leaves between the forward and the
// backward pass.
#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

// The time from the storage's last use in the forward pass to its first one in the backward pass;
// in a step whose backward pass is not marked, the longest time between two uses. Nothing for
// constants, for what is used in one pass only, and where no operator runs between.
std::optional<Absence> long_absence(const Graph& graph, const Timetable& timetable,
                                    StorageId storage);

// "swap-all": all that the backward pass needs is swapped (save_on_cpu of PyTorch).
// "vdnn", "vdnn-all": what convolutions, or all operators, read and keep (Rhu et al., vDNN:
//   Virtualized Deep Neural Networks for Scalable, Memory-Efficient Neural Network Design, 2016).
// "checkpoint": the forward pass in segments of about the square root of its operators; only what
//   crosses into a later segment stays, which the timetable then counts as used (Chen et al.,
//   Training Deep Nets with Sublinear Memory Cost, 2016).
// kInvalid, with the reason, where the step or the link does not allow it.
Result<Plan> rival_plan(std::string_view name, const Graph& graph, Timetable& timetable,
                        const Limits& limits);

// "checkpoint" with segments of so many times the square root.
Result<Plan> checkpoint_plan(const Graph& graph, Timetable& timetable, double length_factor);

// Who swaps has to have a link.
Status need_link(std::string_view policy, const Limits& limits);

}  // namespace tierpilot::swap
