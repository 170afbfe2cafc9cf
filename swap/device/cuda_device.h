// A CUDA device: copies run in streams of their own, from and to pinned memory, beside what the
// program computes.
#pragma once

#include <memory>
#include <string>

#include "swap/device/compute_device.h"

namespace tierpilot::swap {

// In its primary context, which PyTorch uses too. kUnavailable: no driver, or no such device.
Result<std::unique_ptr<ComputeDevice>> open_cuda(int index,
                                                 const std::string& library = "libcuda.so.1");

}  // namespace tierpilot::swap
