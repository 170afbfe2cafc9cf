// Kinds of GPUs as people name them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/sharing/gpu_features.h"

namespace tierpilot::sharing {

// By a name of people or a driver, "v100", "Tesla V100-SXM2-16GB": what the maker publishes of
// those that trainings are usually measured on. Null: unknown.
const GpuFeatures* published_gpu(std::string_view name);

// One of `measured` by its name, or features: "cores=5120,sm_clock_mhz=1530,...", or "name=..." and
// so on. kInvalid tells what there is.
Result<GpuFeatures> parse_gpu(const std::string& text, const std::vector<GpuFeatures>& measured);

}  // namespace tierpilot::sharing
