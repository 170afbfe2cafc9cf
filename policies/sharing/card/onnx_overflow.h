// Sizes that ONNX's shape inference cannot compute: it multiplies and adds them in 64 bits without
// a look, and what is over would be a small size, or none.
#pragma once

#include <onnx/defs/shape_inference.h>

#include <string>

namespace tierpilot::sharing {

// Whether something that inference computes for this kind of operator may be over, or a value that
// it reads has more elements than any card may have. What such an operator makes is unknown.
bool may_overflow(const std::string& kind, const onnx::InferenceContext& context);

// The same of what it computes of values that are sizes.
bool may_overflow(const std::string& kind, onnx::DataPropagationContext& context);

}  // namespace tierpilot::sharing
