// Experiences that tests can tell apart by a number.
#pragma once

#include <memory>

#include "policies/placement/published/experience.h"

namespace tierpilot::testing_experiences {

// Two nodes, in slots 0 and 1.
inline std::shared_ptr<const Observation> observation(double number) {
  Observation seen;
  seen.values.assign(ObservationLayout::kSize, 0.0F);
  seen.values[ObservationLayout::kOperations] = static_cast<float>(number);
  seen.present = seen.candidates = SlotMask(3);
  seen.exchangeable = true;
  return std::make_shared<const Observation>(std::move(seen));
}

inline PublishedExperience experience(double number) {
  return {observation(number), observation(number + 1), 0, number};
}

}  // namespace tierpilot::testing_experiences
