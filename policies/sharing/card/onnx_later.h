// Operators of ONNX's own domain that came after the library here, as far as sizes go.
#pragma once

#include <onnx/defs/schema.h>

#include <string>

namespace tierpilot::sharing {

// Its outputs' types and sizes by its inputs'; null: it is none of them.
const onnx::OpSchema* later_schema(const std::string& kind);

}  // namespace tierpilot::sharing
