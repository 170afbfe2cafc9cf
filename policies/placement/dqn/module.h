// `dqn`, as hosts know it.
#pragma once

#include <memory>

#include "policies/placement/dqn/settings.h"
#include "policies/placement/dqn/weights.h"
#include "policies/placement/module.h"

namespace tierpilot {

// `loaded`: weights to begin from, as LearningModule::load() reads them; null: none yet.
PlacementModule dqn_module(DqnSettings settings = {},
                           std::shared_ptr<const WeightsFile> loaded = nullptr);

}  // namespace tierpilot
