// `dqn-published`, as hosts know it.
#pragma once

#include "policies/placement/module.h"
#include "policies/placement/published/settings.h"

namespace tierpilot {

PlacementModule published_module(const PublishedSettings& settings = {});

}  // namespace tierpilot
