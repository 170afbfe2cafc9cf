// What one ONNX operator costs.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string_view>

#include "policies/sharing/card/onnx_values.h"

namespace tierpilot::sharing {

// Floating point operations of a forward pass; a multiply-add is two. Operators that only move or
// rename data cost nothing, others an operation for each element of their output. Nothing where a
// size is not known, or an equation cannot be read.
std::optional<double> forward_flops(const onnx::NodeProto& node, std::string_view kind,
                                    const Values& values);

// What a framework runs for a recurrent operator where it has none as a whole, step by step.
uint64_t recurrent_launches(const onnx::NodeProto& node, const Values& values);

}  // namespace tierpilot::sharing
