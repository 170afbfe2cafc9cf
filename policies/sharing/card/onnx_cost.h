// Floating point operations of one ONNX operator.
#pragma once

#include "policies/sharing/card/onnx_graph.h"

namespace tierpilot::sharing {

// Of a forward pass; a multiply-add is two. Operators that only move or rename data cost nothing,
// others an operation for each element of their output. 0 where a size is not known.
double forward_flops(const onnx::NodeProto& node, std::string_view kind, const Values& values);

}  // namespace tierpilot::sharing
