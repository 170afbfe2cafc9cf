// Sizes of the values of an ONNX model that the file does not tell.
#pragma once

#include <onnx/onnx_pb.h>

namespace tierpilot::sharing {

// By ONNX's own inference, and by what operators compute of sizes; what these cannot tell stays
// unknown. Operators stay as they are.
void infer_shapes(onnx::ModelProto& model);

}  // namespace tierpilot::sharing
